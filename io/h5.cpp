#include "io/h5.h"

#include <hdf5.h>
#include <hdf5_hl.h>

#include <atomic>
#include <cerrno>

#include "core/error.h"
#include "core/files.h"
#include "io/damaged.h"
#include "io/h5_types.h"

namespace basin::h5 {
namespace {

static_assert(sizeof(hid_t) == sizeof(int64_t), "Handle keeps an hid_t in an int64_t");

constexpr int64_t kColumnChunk = 8192;
constexpr int64_t kParameterChunk = 262144;
constexpr int64_t kSmallestGrowth = 1 << 20;
constexpr double kBestCompression = 1100;  // deflate reaches 1,032

void silence_hdf5() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

/// The shape, cut along its leading dimensions until a chunk holds at most `limit` elements.
std::vector<hsize_t> chunk_of(const std::vector<int64_t>& shape, int64_t limit) {
  std::vector<hsize_t> chunk(shape.begin(), shape.end());
  int64_t behind = product(shape);  // elements of the dimensions after this one
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    behind /= shape[axis];
    chunk[axis] = static_cast<hsize_t>(std::clamp<int64_t>(limit / behind, 1, shape[axis]));
  }
  return chunk;
}

/// Objects keep the order of creation of their attributes and links, and no times: equal content, equal
/// bytes.
void set_common(hid_t properties) {
  require(H5Pset_obj_track_times(properties, false));
  require(H5Pset_attr_creation_order(properties, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED));
}

Handle group_properties(hid_t property_class) {
  Handle properties = own(H5Pcreate(property_class));
  set_common(properties.get());
  require(H5Pset_link_creation_order(properties.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED));
  return properties;
}

Handle dataset_properties(hid_t type, const std::vector<int64_t>& shape, Storage storage) {
  Handle properties = own(H5Pcreate(H5P_DATASET_CREATE));
  set_common(properties.get());
  if (H5Tget_class(type) == H5T_FLOAT) {
    const double missing = std::numeric_limits<double>::quiet_NaN();
    require(H5Pset_fill_value(properties.get(), H5T_NATIVE_DOUBLE, &missing));
  }
  // A text is a reference into HDF5's heap, which filters don't reach (fletcher32 refuses it).
  if (shape.empty() || product(shape) == 0 || H5Tget_class(type) == H5T_STRING) return properties;
  const bool columns = storage == Storage::columns;
  const std::vector<hsize_t> chunk = chunk_of(shape, columns ? kColumnChunk : kParameterChunk);
  require(H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data()));
  require(H5Pset_shuffle(properties.get()));
  require(H5Pset_deflate(properties.get(), columns ? 4 : 1));
  require(H5Pset_fletcher32(properties.get()));
  return properties;
}

Handle access_properties() {
  Handle properties = own(H5Pcreate(H5P_FILE_ACCESS));
  require(H5Pset_libver_bounds(properties.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V110));
  require(H5Pset_file_locking(properties.get(), false, true));
  return properties;
}

/// HDF5's own reader of scales takes this attribute's type on trust, and writes past its buffer where it is another.
bool lists_scales(hid_t dataset, int rank) {
  if (H5Aexists(dataset, "DIMENSION_LIST") <= 0) return false;
  const Handle list = own(H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT));
  const Handle type = own(H5Aget_type(list.get())), space = own(H5Aget_space(list.get()));
  if (H5Tget_class(type.get()) != H5T_VLEN || extent(space.get()) != std::vector<int64_t>{rank}) return false;
  const Handle entry = own(H5Tget_super(type.get()));
  return H5Tequal(entry.get(), H5T_STD_REF_OBJ) > 0;
}

}  // namespace

Handle::~Handle() {
  if (id_ >= 0) H5Idec_ref(id_);
}

// ---- DataSet

std::vector<int64_t> DataSet::shape() const {
  return extent(Handle(check(H5Dget_space(handle_.get()), "inspect")).get());
}

bool DataSet::is_text() const {
  return H5Tget_class(Handle(check(H5Dget_type(handle_.get()), "inspect")).get()) == H5T_STRING;
}

bool DataSet::is_number() const {
  return scalar_type(Handle(check(H5Dget_type(handle_.get()), "inspect")).get()) != at::ScalarType::Undefined;
}

at::ScalarType DataSet::dtype() const {
  const at::ScalarType type = scalar_type(Handle(check(H5Dget_type(handle_.get()), "inspect")).get());
  if (type == at::ScalarType::Undefined)
    throw IoError(fmt::format("{}: {} has an unexpected type", file_, path_));
  return type;
}

size_t DataSet::stored_entries() const {
  const Handle type(check(H5Dget_type(handle_.get()), "inspect"));
  double entries = 1;  // a shape of nonsense would overflow product()
  for (const int64_t size : shape()) entries *= static_cast<double>(static_cast<uint64_t>(size));
  const double stored = static_cast<double>(H5Dget_storage_size(handle_.get()));
  if (entries * static_cast<double>(H5Tget_size(type.get())) > kBestCompression * stored)
    throw DamagedError(
        fmt::format("{}: {} has {:g} entries, but {:g} bytes are stored", file_, path_, entries, stored));
  return static_cast<size_t>(entries);
}

void DataSet::read_into(void* data, at::ScalarType type) const {
  dtype();  // refuses texts and compounds with our own message
  const Handle memory = number_type(type);
  check(H5Dread(handle_.get(), memory.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "read");
}

template <class T>
std::vector<T> DataSet::read() const {
  std::vector<T> values(stored_entries());
  if (!values.empty()) read_into(values.data(), c10::CppTypeToScalarType<T>::value);
  return values;
}
template std::vector<double> DataSet::read() const;
template std::vector<float> DataSet::read() const;
template std::vector<int64_t> DataSet::read() const;
template std::vector<int32_t> DataSet::read() const;
template std::vector<uint8_t> DataSet::read() const;

std::vector<std::string> DataSet::read_texts() const {
  if (!is_text()) throw IoError(fmt::format("{}: {} holds no text", file_, path_));
  stored_entries();
  const Handle type(check(H5Dget_type(handle_.get()), "inspect"));
  const Handle space(check(H5Dget_space(handle_.get()), "inspect"));
  return read_texts_with(type.get(), space.get(), [&](hid_t memory, void* buffer) {
    check(H5Dread(handle_.get(), memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer), "read");
  });
}

std::string DataSet::read_text() const {
  std::vector<std::string> texts = read_texts();
  if (texts.size() != 1) throw IoError(fmt::format("{}: {} is not one text", file_, path_));
  return texts[0];
}

at::Tensor DataSet::read_tensor() const {
  const at::ScalarType type = dtype();
  stored_entries();
  at::Tensor tensor = at::empty(shape(), at::TensorOptions().dtype(type));
  if (tensor.numel() > 0) read_into(tensor.data_ptr(), type);
  return tensor;
}

void DataSet::make_scale(const std::string& name) {
  check(H5DSset_scale(handle_.get(), name.c_str()), "make a dimension scale of");
}

void DataSet::attach_scale(int64_t axis, const DataSet& scale) {
  check(H5DSattach_scale(handle_.get(), scale.handle_.get(), static_cast<unsigned>(axis)),
        "attach a dimension scale to");
}

std::vector<std::string> DataSet::scale_paths(int64_t axis) const {
  struct Visit {
    std::vector<std::string> paths;
    static herr_t add(hid_t, unsigned, hid_t scale, void* self) {
      std::array<char, 1024> path{};
      H5Iget_name(scale, path.data(), path.size());
      static_cast<Visit*>(self)->paths.emplace_back(path.data());
      return 0;
    }
  } visit;
  if (!lists_scales(handle_.get(), static_cast<int>(shape().size()))) return {};
  check(H5DSiterate_scales(handle_.get(), static_cast<unsigned>(axis), nullptr, Visit::add, &visit),
        "list scales of");
  return visit.paths;
}

// ---- Group

std::string Group::child(const std::string& name) const {
  return path_ == "/" ? path_ + name : path_ + "/" + name;
}

void Group::make_parents(const std::string& name) {
  for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    if (!has(name.substr(0, slash))) create_group(name.substr(0, slash));
  }
}

Group Group::create_group(const std::string& name) {
  make_parents(name);
  const Handle properties = group_properties(H5P_GROUP_CREATE);
  Handle id(check(H5Gcreate2(handle_.get(), name.c_str(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
                  "create group", name));
  return Group(std::move(id), file_, child(name));
}

DataSet Group::write(const std::string& name, at::ScalarType type, const std::vector<int64_t>& shape,
                     const void* data, Storage storage) {
  make_parents(name);
  const Handle file_type = number_type(type), space = dataspace(shape);
  const Handle properties = dataset_properties(file_type.get(), shape, storage);
  Handle id(check(H5Dcreate2(handle_.get(), name.c_str(), file_type.get(), space.get(), H5P_DEFAULT,
                             properties.get(), H5P_DEFAULT),
                  "create", name));
  if (product(shape) > 0) {
    check(H5Dwrite(id.get(), file_type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "write", name);
    check(H5Dflush(id.get()), "write", name);  // compression happens here; closing could not report a failure
  }
  return DataSet(std::move(id), file_, child(name));
}

DataSet Group::write_tensor(const std::string& name, const at::Tensor& tensor, Storage storage) {
  const at::Tensor rows = tensor.detach().to(at::kCPU).contiguous();
  return write(name, rows.scalar_type(), rows.sizes().vec(), rows.data_ptr(), storage);
}

DataSet Group::write_texts(const std::string& name, const std::vector<std::string>& texts) {
  make_parents(name);
  const std::vector<int64_t> shape{static_cast<int64_t>(texts.size())};
  const Handle type = text_type(), space = dataspace(shape);
  const Handle properties = dataset_properties(type.get(), shape, Storage::columns);
  Handle id(check(H5Dcreate2(handle_.get(), name.c_str(), type.get(), space.get(), H5P_DEFAULT,
                             properties.get(), H5P_DEFAULT),
                  "create", name));
  const std::vector<const char*> pointers = c_strings(texts);
  if (!texts.empty()) {
    check(H5Dwrite(id.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()), "write", name);
    check(H5Dflush(id.get()), "write", name);
  }
  return DataSet(std::move(id), file_, child(name));
}

DataSet Group::write_text(const std::string& name, const std::string& text) {
  make_parents(name);
  const Handle type = text_type(), space = dataspace({});
  const Handle properties = dataset_properties(type.get(), {}, Storage::columns);
  Handle id(check(H5Dcreate2(handle_.get(), name.c_str(), type.get(), space.get(), H5P_DEFAULT,
                             properties.get(), H5P_DEFAULT),
                  "create", name));
  const char* pointer = text.c_str();
  check(H5Dwrite(id.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &pointer), "write", name);
  return DataSet(std::move(id), file_, child(name));
}

bool Group::has(const std::string& name) const {
  for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    if (check(H5Lexists(handle_.get(), name.substr(0, slash).c_str(), H5P_DEFAULT), "look for", name) == 0)
      return false;
  }
  return check(H5Lexists(handle_.get(), name.c_str(), H5P_DEFAULT), "look for", name) > 0;
}

Group Group::group(const std::string& name) const {
  if (!has(name)) throw IoError(fmt::format("{}: there is no group {}", file_, child(name)));
  return Group(Handle(check(H5Gopen2(handle_.get(), name.c_str(), H5P_DEFAULT), "open", name)), file_,
               child(name));
}

DataSet Group::dataset(const std::string& name) const {
  if (!has(name)) throw IoError(fmt::format("{}: there is no dataset {}", file_, child(name)));
  return DataSet(Handle(check(H5Dopen2(handle_.get(), name.c_str(), H5P_DEFAULT), "open", name)), file_,
                 child(name));
}

std::vector<std::string> Group::names_of_type(int type) const {
  struct Visit {
    std::vector<std::string> names;
    static herr_t add(hid_t, const char* name, const H5L_info_t*, void* self) {
      static_cast<Visit*>(self)->names.emplace_back(name);
      return 0;
    }
  } visit;
  hsize_t position = 0;
  if (H5Literate(handle_.get(), H5_INDEX_CRT_ORDER, H5_ITER_INC, &position, Visit::add, &visit) < 0) {
    H5Eclear2(H5E_DEFAULT);  // written by another library, which kept no order
    visit.names.clear();
    position = 0;
    check(H5Literate(handle_.get(), H5_INDEX_NAME, H5_ITER_INC, &position, Visit::add, &visit), "list");
  }
  std::vector<std::string> names;
  for (const std::string& name : visit.names) {
    const Handle object(check(H5Oopen(handle_.get(), name.c_str(), H5P_DEFAULT), "open", name));
    if (H5Iget_type(object.get()) == type) names.push_back(name);
  }
  return names;
}

std::vector<std::string> Group::group_names() const { return names_of_type(H5I_GROUP); }
std::vector<std::string> Group::dataset_names() const { return names_of_type(H5I_DATASET); }

bool Group::is_same_as(const Group& other) const {
  // The one call of this kind whose name and type are the same in HDF5 1.10 and 1.14.
  H5G_stat_t mine{}, others{};
  check(H5Gget_objinfo(handle_.get(), ".", true, &mine), "identify");
  other.check(H5Gget_objinfo(other.handle_.get(), ".", true, &others), "identify");
  return std::ranges::equal(mine.fileno, others.fileno) && std::ranges::equal(mine.objno, others.objno);
}

// ---- File

File File::create(const std::string& path, int64_t expected_bytes) {
  silence_hdf5();
  const Handle creation = group_properties(H5P_FILE_CREATE), access = access_properties();
  // Most of our datasets have one chunk; the default, 32, gives each an index of two kilobytes for 64.
  require(H5Pset_istore_k(creation.get(), 4));
  require(H5Pset_userblock(creation.get(), kSealBytes));
  const size_t growth = static_cast<size_t>(std::max(kSmallestGrowth, expected_bytes / 4));
  require(H5Pset_fapl_core(access.get(), growth, false));
  // Without a backing store the core driver touches no file; the name only has to differ from those of open
  // ones.
  static std::atomic<int64_t> serial{0};
  const std::string name = fmt::format("{}#{}", path, serial++);
  Handle id(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()));
  if (id.get() < 0)
    throw IoError(fmt::format("{}: cannot create an HDF5 file in memory: {}", path, hdf5_message()));
  return File(std::move(id), path, "/");
}

File File::open_unchecked(const std::string& path, bool to_write) {
  silence_hdf5();
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw IoError(fmt::format("{}: {}", path, error.message()));
  const Handle access = access_properties();
  errno = 0;
  Handle id(H5Fopen(path.c_str(), to_write ? H5F_ACC_RDWR : H5F_ACC_RDONLY, access.get()));
  if (id.get() < 0) {
    if (is_of_the_system(errno)) throw IoError(fmt::format("{}: {}", path, std::strerror(errno)));
    throw DamagedError(
        fmt::format("{}: truncated, damaged or not an HDF5 file ({} bytes): {}", path, size, hdf5_message()));
  }
  return File(std::move(id), path, "/");
}

Seal File::seal() const {
  Seal seal;
  if (has_attribute("schema_name")) seal.kind = attribute_as<std::string>("schema_name");
  if (has_attribute("label")) seal.label = attribute_as<std::string>("label");
  if (has_attribute("update")) seal.update = attribute_as<int64_t>("update");
  return seal;
}

std::string File::image() {
  check(H5Fflush(handle_.get(), H5F_SCOPE_GLOBAL), "flush");
  const int64_t size = check(H5Fget_file_image(handle_.get(), nullptr, 0), "measure");
  // HDF5 leaves the user block out.
  std::string bytes(static_cast<size_t>(kSealBytes + size), '\0');
  check(H5Fget_file_image(handle_.get(), bytes.data() + kSealBytes, static_cast<size_t>(size)), "copy");
  seal_block(seal(), std::string_view(bytes).substr(kSealBytes)).copy(bytes.data(), kSealBytes);
  return bytes;
}

void File::save() { write_file_atomically(file_, image()); }

}  // namespace basin::h5
