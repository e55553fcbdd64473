#include <cstring>

#include "core/error.h"
#include "io/h5.h"
#include "io/h5_types.h"

namespace basin::h5 {
namespace {

/// How an OptionValue stands in an attribute.
struct AttributeForm {
  Handle type;
  std::vector<int64_t> shape;
  std::vector<char> bytes;           // of numbers
  std::vector<const char*> strings;  // of texts; point into the value
  const void* data() const {
    return strings.empty() ? static_cast<const void*>(bytes.data()) : strings.data();
  }
};

template <class T>
std::vector<char> bytes_of(const T* values, size_t count) {
  std::vector<char> bytes(count * sizeof(T));
  if (count > 0) std::memcpy(bytes.data(), values, bytes.size());
  return bytes;
}

template <class T>
AttributeForm number_list(at::ScalarType type, const std::vector<T>& v) {
  return {number_type(type), {static_cast<int64_t>(v.size())}, bytes_of(v.data(), v.size()), {}};
}

struct FormOf {
  AttributeForm operator()(bool v) const {
    const int8_t byte = v;
    return {bool_type(), {}, bytes_of(&byte, 1), {}};
  }
  AttributeForm operator()(int64_t v) const { return {number_type(at::kLong), {}, bytes_of(&v, 1), {}}; }
  AttributeForm operator()(double v) const { return {number_type(at::kDouble), {}, bytes_of(&v, 1), {}}; }
  AttributeForm operator()(const std::string& v) const { return {text_type(), {}, {}, {v.c_str()}}; }
  AttributeForm operator()(const std::vector<int64_t>& v) const { return number_list(at::kLong, v); }
  AttributeForm operator()(const std::vector<double>& v) const { return number_list(at::kDouble, v); }
  AttributeForm operator()(const std::vector<std::string>& v) const {
    return {text_type(), {static_cast<int64_t>(v.size())}, {}, c_strings(v)};
  }
};

/// HDF5's and netCDF's bookkeeping of dimension scales.
bool is_internal(const std::string& name) {
  static const std::set<std::string> internal{"CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST",
                                              "DIMENSION_LABELS"};
  return internal.count(name) > 0;
}

template <class T>
OptionValue numbers(hid_t attribute, hid_t memory, const std::vector<int64_t>& shape, herr_t* result) {
  std::vector<T> values(static_cast<size_t>(product(shape)));
  *result = values.empty() ? 0 : H5Aread(attribute, memory, values.data());
  if (shape.empty() && !values.empty()) return values[0];
  return values;
}

/// nullopt for a type that we don't write; `result` is HDF5's.
std::optional<OptionValue> value_of(hid_t attribute, herr_t* result) {
  *result = 0;
  const Handle type = own(H5Aget_type(attribute)), space = own(H5Aget_space(attribute));
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) return std::nullopt;
  const std::vector<int64_t> shape = extent(space.get());
  switch (H5Tget_class(type.get())) {
    case H5T_INTEGER:
      return numbers<int64_t>(attribute, H5T_NATIVE_INT64, shape, result);
    case H5T_FLOAT:
      return numbers<double>(attribute, H5T_NATIVE_DOUBLE, shape, result);
    case H5T_ENUM: {
      int8_t byte = 0;
      if (!shape.empty() || H5Tget_size(type.get()) != 1) return std::nullopt;
      *result = H5Aread(attribute, type.get(), &byte);
      return byte != 0;
    }
    case H5T_STRING: {
      std::vector<std::string> texts =
          read_texts_with(type.get(), space.get(),
                          [&](hid_t memory, void* buffer) { *result = H5Aread(attribute, memory, buffer); });
      if (shape.empty()) return texts.at(0);
      return texts;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

int64_t Object::check(int64_t result, const char* what, const std::string& name) const {
  if (result >= 0) return result;
  const std::string object = name.empty() ? path_ : path_ == "/" ? path_ + name : path_ + "/" + name;
  fail_reading(fmt::format("{}: cannot {} {}: {}", file_, what, object, hdf5_message()));
}

void Object::set_attribute(const std::string& name, const OptionValue& value) {
  const AttributeForm form = std::visit(FormOf{}, value);
  const Handle space = dataspace(form.shape);
  if (has_attribute(name)) check(H5Adelete(handle_.get(), name.c_str()), "replace attribute", name);
  const Handle attribute(
      check(H5Acreate2(handle_.get(), name.c_str(), form.type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
            "create attribute", name));
  if (product(form.shape) > 0)
    check(H5Awrite(attribute.get(), form.type.get(), form.data()), "write attribute", name);
}

void Object::set_attributes(const Attributes& attributes) {
  for (const auto& [name, value] : attributes) set_attribute(name, value);
}

bool Object::has_attribute(const std::string& name) const {
  return check(H5Aexists(handle_.get(), name.c_str()), "look for attribute", name) > 0;
}

OptionValue Object::attribute(const std::string& name) const {
  if (!has_attribute(name)) throw IoError(fmt::format("{}: {} has no attribute \"{}\"", file_, path_, name));
  const Handle attribute(check(H5Aopen(handle_.get(), name.c_str(), H5P_DEFAULT), "open attribute", name));
  herr_t result = 0;
  std::optional<OptionValue> value = value_of(attribute.get(), &result);
  check(result, "read attribute", name);
  if (!value) wrong_attribute_type(name);
  return *value;
}

Attributes Object::attributes() const {
  struct Visit {
    std::vector<std::string> names;
    static herr_t add(hid_t, const char* name, const H5A_info_t*, void* self) {
      static_cast<Visit*>(self)->names.emplace_back(name);
      return 0;
    }
  } visit;
  hsize_t position = 0;
  if (H5Aiterate2(handle_.get(), H5_INDEX_CRT_ORDER, H5_ITER_INC, &position, Visit::add, &visit) < 0) {
    H5Eclear2(H5E_DEFAULT);  // written by another library, which kept no order
    visit.names.clear();
    position = 0;
    check(H5Aiterate2(handle_.get(), H5_INDEX_NAME, H5_ITER_INC, &position, Visit::add, &visit),
          "list attributes of");
  }
  Attributes attributes;
  for (const std::string& name : visit.names) {
    if (is_internal(name)) continue;
    const Handle attribute(check(H5Aopen(handle_.get(), name.c_str(), H5P_DEFAULT), "open attribute", name));
    herr_t result = 0;
    std::optional<OptionValue> value = value_of(attribute.get(), &result);
    check(result, "read attribute", name);
    if (value) attributes.emplace_back(name, std::move(*value));
  }
  return attributes;
}

void Object::wrong_attribute_type(const std::string& name) const {
  throw IoError(fmt::format("{}: attribute \"{}\" of {} has an unexpected type", file_, name, path_));
}

}  // namespace basin::h5
