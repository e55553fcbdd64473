// The set "arrays": a user's own examples, from numpy or HDF5.

#include "core/error.h"
#include "core/hash.h"
#include "data/npy.h"
#include "data/registry.h"
#include "data/source_files.h"
#include "io/h5.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPictureDimensions = 4, kMostClasses = 1'000'000;
constexpr const char* kArrays[] = {"train_inputs", "train_targets", "test_inputs", "test_targets"};

/// Where an array was found, for messages, and its numbers.
struct Array {
  std::string where;
  at::Tensor values;
};
using Arrays = std::map<std::string, Array>;

Arrays from_folder(const std::string& path) {
  Arrays found;
  for (const std::string name : kArrays) {
    const std::string file = (fs::path(path) / (name + ".npy")).string();
    if (fs::exists(file)) found[name] = {file, mapped_npy(file)};
  }
  return found;
}

Arrays from_npz(const std::string& path) {
  std::set<std::string> wanted;
  for (const std::string name : kArrays) wanted.insert(name + ".npy");
  Arrays found;
  for (auto& [member, bytes] : read_members(path, wanted)) {
    const auto kept = std::make_shared<std::string>(std::move(bytes));
    const std::string where = path + ":" + member, name = fs::path(member).stem().string();
    found[name] = {where, npy_tensor(kept, kept->data(), kept->size(), where)};
  }
  return found;
}

Arrays from_hdf5(const std::string& path) {
  const h5::File file = h5::File::open(path);
  Arrays found;
  for (const std::string name : kArrays)
    if (file.has(name)) found[name] = {path + ":/" + name, file.dataset(name).read_tensor()};
  return found;
}

Arrays arrays_at(const std::string& path) {
  if (!fs::exists(path)) throw DataError("missing data: " + path + " does not exist");
  if (fs::is_directory(path)) return from_folder(path);
  return fs::path(path).extension() == ".npz" ? from_npz(path) : from_hdf5(path);
}

std::string sizes_of(const at::Tensor& tensor) { return fmt::format("{}", fmt::join(tensor.sizes(), ", ")); }

void refuse_not_finite(const Array& array) {
  const at::Tensor finite = at::isfinite(array.values).flatten(1).all(1);
  if (finite.all().item<bool>()) return;
  throw DataError(fmt::format("{}: example {} has a NaN or an infinity", array.where,
                              at::argmin(finite.to(at::kByte)).item<int64_t>()));
}

/// Pictures as bytes, other numbers as float32, float64 or int64.
at::Tensor as_inputs(const Array& array) {
  const at::Tensor& x = array.values;
  const at::ScalarType type = x.scalar_type();
  if (x.dim() < 2 || x.numel() == 0)
    throw DataError(
        fmt::format("{}: [{}]; one row per example is expected, [n, ...]", array.where, sizes_of(x)));
  if (type == at::kByte && x.dim() == kPictureDimensions) return x.contiguous();
  if (type == at::kByte || type == at::kBool) return x.to(at::kFloat);
  if (!x.is_floating_point()) {
    if (x.min().item<int64_t>() < 0)
      throw DataError(array.where + ": a negative integer; integer inputs are tokens, from 0");
    return x.to(at::kLong);
  }
  refuse_not_finite(array);
  return (type == at::kHalf ? x.to(at::kFloat) : x).contiguous();
}

/// Numbers to predict, [n, k].
at::Tensor as_numbers(const Array& array) {
  const at::Tensor& y = array.values;
  if (y.dim() > 2 || y.numel() == 0)
    throw DataError(fmt::format("{}: [{}]; numbers to predict are [n] or [n, k]", array.where, sizes_of(y)));
  refuse_not_finite({array.where, y.view({y.size(0), -1})});
  return (y.scalar_type() == at::kHalf ? y.to(at::kFloat) : y).reshape({y.size(0), -1}).contiguous();
}

/// Classes, or numbers to predict where they aren't integers.
at::Tensor as_labels(const Array& array, const at::Tensor& inputs) {
  const at::Tensor& y = array.values;
  if (y.dim() == 0 || y.size(0) != inputs.size(0))
    throw DataError(
        fmt::format("{}: {} labels for {} examples", array.where, y.dim() ? y.size(0) : 0, inputs.size(0)));
  if (y.is_floating_point()) return as_numbers(array);
  if (y.dim() > 2 || y.numel() == 0)
    throw DataError(fmt::format("{}: [{}]; classes are [n], or [n, tokens]", array.where, sizes_of(y)));
  const at::Tensor labels = y.to(at::kLong).contiguous();
  if (labels.min().item<int64_t>() < 0)
    throw DataError(
        fmt::format("{}: label {}; classes count from 0", array.where, labels.min().item<int64_t>()));
  if (const auto largest = labels.max().item<int64_t>(); largest >= kMostClasses)
    throw DataError(
        fmt::format("{}: label {}; more than {} classes are no classes", array.where, largest, kMostClasses));
  return labels;
}

Split split_of(const Arrays& arrays, const std::string& name, const std::string& path, bool required) {
  const auto inputs = arrays.find(name + "_inputs"), targets = arrays.find(name + "_targets");
  if (inputs == arrays.end() && targets == arrays.end() && !required) return {};
  for (const auto& [found, what] : {std::pair{inputs, "_inputs"}, {targets, "_targets"}})
    if (found == arrays.end())
      throw DataError(fmt::format("missing data: no array {}{} in {}", name, what, path));
  const at::Tensor x = as_inputs(inputs->second);
  return {x, as_labels(targets->second, x), at::arange(x.size(0), at::kLong)};
}

std::string sha256_of(const Arrays& arrays) {
  Sha256 hash;
  for (const std::string name : kArrays) {
    const auto found = arrays.find(name);
    if (found == arrays.end()) continue;
    const at::Tensor values = found->second.values.contiguous();
    hash.update(fmt::format("{} {} [{}]\n", name, c10::toString(values.scalar_type()), sizes_of(values)));
    hash.update(values.const_data_ptr(), values.nbytes());
  }
  return hash.hex_digest();
}

/// But for how many there are.
void check_alike(const std::string& where, const at::Tensor& test, const at::Tensor& train) {
  const auto one = [](const at::Tensor& all) {
    return fmt::format("{} [{}]", c10::toString(all.scalar_type()), fmt::join(all.sizes().slice(1), ", "));
  };
  if (one(test) != one(train))
    throw DataError(fmt::format("{}: examples of {}, and of {} to train on", where, one(test), one(train)));
}

/// 0 where there are none, but numbers.
int64_t classes_of(const Dataset& data, int64_t asked, const std::string& path) {
  if (data.train.labels.is_floating_point()) {
    if (asked > 0)
      throw ConfigError(fmt::format("data.classes = {}: the targets in {} are numbers", asked, path));
    return 0;
  }
  int64_t largest = data.train.labels.max().item<int64_t>();
  if (data.test.size() > 0) largest = std::max(largest, data.test.labels.max().item<int64_t>());
  if (asked > 0 && largest >= asked)
    throw DataError(
        fmt::format("{}: label {}; data.classes = {}, and they count from 0", path, largest, asked));
  return std::max(asked, largest + 1);
}

Dataset read_arrays(const std::string& path, int64_t classes) {
  const Arrays arrays = arrays_at(path);
  Dataset data;
  data.name = "arrays";
  data.pixels = "user's own";
  data.train = split_of(arrays, "train", path, /*required=*/true);
  data.test = split_of(arrays, "test", path, /*required=*/false);
  if (data.test.size() > 0) {
    check_alike(arrays.at("test_inputs").where, data.test.inputs, data.train.inputs);
    check_alike(arrays.at("test_targets").where, data.test.labels, data.train.labels);
  }
  const int64_t count = classes_of(data, classes, path);
  for (int64_t c = 0; c < count; ++c) data.class_names.push_back(std::to_string(c));
  data.sha256 = sha256_of(arrays);
  return data;
}

}  // namespace

DatasetEntry arrays_entry() {
  return {.name = "arrays",
          .label = "arrays",
          .help =
              "your own examples: a .npz, a folder of .npy or an HDF5 file with train_inputs, train_targets, "
              "test_inputs and test_targets",
          .needs_path = true,
          .read = [](const DataOptions& options) { return read_arrays(options.path, options.classes); }};
}

}  // namespace basin
