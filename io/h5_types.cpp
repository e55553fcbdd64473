#include "io/h5_types.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "core/error.h"
#include "io/damaged.h"

namespace basin::h5 {

namespace {

herr_t keep_innermost(unsigned n, const H5E_error2_t* error, void* message) {
  if (n == 0 && error->desc) *static_cast<std::string*>(message) = error->desc;
  return 0;
}

}  // namespace

std::string hdf5_message() {
  std::string message;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &message);
  H5Eclear2(H5E_DEFAULT);
  return message.empty() ? "no reason given by HDF5" : message;
}

bool is_of_the_system(int fault) {
  constexpr int kSystemFaults[] = {EACCES, EPERM, EIO, EMFILE, ENFILE, ENOMEM, ESTALE, ETIMEDOUT};
  return std::find(std::begin(kSystemFaults), std::end(kSystemFaults), fault) != std::end(kSystemFaults);
}

void fail_reading(const std::string& message) {
  if (is_of_the_system(errno)) throw IoError(message + " (" + std::strerror(errno) + ")");
  throw DamagedError(message);
}

Handle own(hid_t id) {
  if (id < 0) throw IoError("HDF5: " + hdf5_message());
  return Handle(id);
}

void require(herr_t result) {
  if (result < 0) throw IoError("HDF5: " + hdf5_message());
}

Handle text_type() {
  Handle type = own(H5Tcopy(H5T_C_S1));
  require(H5Tset_size(type.get(), H5T_VARIABLE));
  require(H5Tset_cset(type.get(), H5T_CSET_UTF8));
  return type;
}

Handle bool_type() {
  Handle type = own(H5Tenum_create(H5T_STD_I8LE));
  const int8_t no = 0, yes = 1;
  require(H5Tenum_insert(type.get(), "FALSE", &no));
  require(H5Tenum_insert(type.get(), "TRUE", &yes));
  return type;
}

Handle number_type(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return own(H5Tcopy(H5T_IEEE_F64LE));
    case at::kFloat:
      return own(H5Tcopy(H5T_IEEE_F32LE));
    case at::kLong:
      return own(H5Tcopy(H5T_STD_I64LE));
    case at::kInt:
      return own(H5Tcopy(H5T_STD_I32LE));
    case at::kByte:
      return own(H5Tcopy(H5T_STD_U8LE));
    case at::kChar:
      return own(H5Tcopy(H5T_STD_I8LE));
    case at::kBool:
      return bool_type();
    default:
      throw IoError(fmt::format("numbers of type {} have no form in our files", c10::toString(type)));
  }
}

/// HDF5 would clamp what a type doesn't hold.
at::ScalarType integer_type(size_t bytes, bool is_signed) {
  if (bytes == 1) return is_signed ? at::kChar : at::kByte;
  if (!is_signed) return at::ScalarType::Undefined;
  return bytes == 8 ? at::kLong : bytes == 4 ? at::kInt : at::ScalarType::Undefined;
}

at::ScalarType scalar_type(hid_t type) {
  const size_t size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      return size == 8 ? at::kDouble : size == 4 ? at::kFloat : at::ScalarType::Undefined;
    case H5T_INTEGER:
      return integer_type(size, H5Tget_sign(type) == H5T_SGN_2);
    case H5T_ENUM:
      return size == 1 ? at::kBool : at::ScalarType::Undefined;
    default:
      return at::ScalarType::Undefined;
  }
}

Handle dataspace(const std::vector<int64_t>& shape) {
  if (shape.empty()) return own(H5Screate(H5S_SCALAR));
  const std::vector<hsize_t> dims(shape.begin(), shape.end());
  return own(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr));
}

std::vector<int64_t> extent(hid_t space) {
  std::vector<hsize_t> dims(static_cast<size_t>(std::max(0, H5Sget_simple_extent_ndims(space))));
  if (!dims.empty()) H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  return {dims.begin(), dims.end()};
}

int64_t product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<const char*> c_strings(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  pointers.reserve(texts.size());
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

}  // namespace basin::h5
