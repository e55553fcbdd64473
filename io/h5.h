// defines: h5::File, Group and DataSet, a checked RAII wrapper over HDF5's C interface.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/option_value.h"
#include "io/h5_handle.h"
#include "io/seal.h"

/// Every HDF5 call stands once in h5.cpp, its return value checked: a failure is one IoError line that names the file, the
/// object and HDF5's innermost message. HDF5's own error printing is off.
///
///   h5::File file = h5::File::create("run.h5");          // built in memory
///   h5::Group train = file.create_group("train");
///   h5::DataSet update = train.write("update", std::vector<double>{1, 2, 3});
///   h5::DataSet loss = train.write("loss", std::vector<double>{2.3, 2.2, 2.0});
///   update.make_scale("update");
///   loss.attach_scale(0, update);
///   loss.set_attribute("units", std::string("1"));
///   file.save();                                          // temp + fsync + rename
///
/// Files are built in memory and saved as one image. HDF5 therefore never meets a full disk: its library cannot close a
/// file that it failed to flush, and tries again, noisily, at exit. Cost: about twice the file's size in memory while saving.
namespace basin::h5 {

/// How numbers of one or more dimensions lie in the file; scalars, empty datasets and texts are contiguous.
enum class Storage {
  columns,     // chunks of at most 8,192 elements, shuffle + gzip 4 + fletcher32
  parameters,  // chunks of at most 262,144 elements, shuffle + gzip 1 + fletcher32
};

using Attributes = std::vector<std::pair<std::string, OptionValue>>;

/// Anything that carries attributes. Lists are 1-D attributes, strings variable-length UTF-8, bool h5py's enumeration.
class Object {
 public:
  /// Replaces an attribute of the same name.
  void set_attribute(const std::string& name, const OptionValue& value);
  void set_attributes(const Attributes& attributes);
  bool has_attribute(const std::string& name) const;
  OptionValue attribute(const std::string& name) const;
  /// IoError where the attribute is absent or of another type; an int64 is not taken for a double.
  template <class T>
  T attribute_as(const std::string& name) const {
    const OptionValue value = attribute(name);
    if (const T* wanted = std::get_if<T>(&value)) return *wanted;
    wrong_attribute_type(name);
  }
  /// In order of creation. HDF5's own (dimension scales) and those of types that we don't write are left out.
  Attributes attributes() const;

  const std::string& file() const { return file_; }
  const std::string& path() const { return path_; }  // "/train/loss"

 protected:
  Object(Handle handle, std::string file, std::string path)
      : handle_(std::move(handle)), file_(std::move(file)), path_(std::move(path)) {}
  [[noreturn]] void wrong_attribute_type(const std::string& name) const;
  /// Throws IoError "FILE: cannot WHAT PATH[/name]: HDF5's message" where `result` is negative; else returns it.
  int64_t check(int64_t result, const char* what, const std::string& name = "") const;

  Handle handle_;
  std::string file_, path_;
};

class DataSet : public Object {
 public:
  std::vector<int64_t> shape() const;
  bool is_text() const;
  bool is_number() const;        // of a type that we write
  at::ScalarType dtype() const;  // of numbers; IoError for types that we don't write

  /// Row-major; T is double, float, int64_t, int32_t or uint8_t, converted by HDF5 where the file has another type.
  template <class T>
  std::vector<T> read() const;
  std::vector<std::string> read_texts() const;
  std::string read_text() const;  // of a scalar
  at::Tensor read_tensor() const;

  /// Makes this 1-D dataset a dimension scale (H5DS) called `name`.
  void make_scale(const std::string& name);
  void attach_scale(int64_t axis, const DataSet& scale);
  std::vector<std::string> scale_paths(int64_t axis) const;

 private:
  friend class Group;
  using Object::Object;
  void read_into(void* data, at::ScalarType type) const;
  /// Entries by the shape; DamagedError where what is stored can't hold them.
  size_t stored_entries() const;
};

class Group : public Object {
 public:
  Group create_group(const std::string& name);
  /// Missing groups on the way ("momentum/conv1.weight") are created.
  DataSet write(const std::string& name, at::ScalarType type, const std::vector<int64_t>& shape,
                const void* data, Storage storage = Storage::columns);
  template <class T>
  DataSet write(const std::string& name, const std::vector<T>& values, Storage storage = Storage::columns) {
    return write(name, c10::CppTypeToScalarType<T>::value, {static_cast<int64_t>(values.size())},
                 values.data(), storage);
  }
  DataSet write_tensor(const std::string& name, const at::Tensor& tensor,
                       Storage storage = Storage::parameters);
  DataSet write_texts(const std::string& name, const std::vector<std::string>& texts);
  DataSet write_text(const std::string& name, const std::string& text);  // a scalar

  bool has(const std::string& name) const;
  Group group(const std::string& name) const;
  DataSet dataset(const std::string& name) const;
  std::vector<std::string> group_names()
      const;  // in order of creation where the file tracks it, else by name
  std::vector<std::string> dataset_names() const;
  /// Whether this is the same group of the same file, by whatever links both were reached.
  bool is_same_as(const Group& other) const;

 protected:
  using Object::Object;
  std::string child(const std::string& name) const;
  void make_parents(const std::string& name);
  std::vector<std::string> names_of_type(int type) const;
};

class File : public Group {
 public:
  /// An empty file in memory; `expected_bytes` sizes its growth. Nothing is on disk before save().
  static File create(const std::string& path, int64_t expected_bytes = 0);
  /// Read-only. The seal is checked before libhdf5 sees the file (io/seal.h). A file without one, an older version's or
  /// another program's, is first read in a child process from end to end: what crashes or hangs libhdf5 is a DamagedError too.
  static File open(const std::string& path);
  /// The same without a look at the seal: for a child process that may crash. Without HDF5's file locks, too, which fail on NFS;
  /// our files are replaced, never changed in place.
  static File open_unchecked(const std::string& path, bool to_write = false);
  /// The file's bytes, its seal in front.
  std::string image();
  /// What its root says about itself.
  Seal seal() const;
  /// Writes the image atomically to the path given to create().
  void save();

 private:
  using Group::Group;
};

}  // namespace basin::h5
