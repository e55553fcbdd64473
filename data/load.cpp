#include "data/load.h"

#include "core/hash.h"
#include "data/augmentation.h"
#include "data/registry.h"

namespace basin {
namespace {

void check_path(const DatasetEntry& entry, const DataOptions& o) {
  if (entry.needs_path && o.path.empty())
    throw ConfigError(fmt::format(
        "data.path is empty: {0} needs the folder or archive that holds it{1}", o.set,
        entry.can_be_fetched() ? " (`basin data get " + o.set + "` fetches it, and only when asked)" : ""));
  if (!entry.needs_path && !o.path.empty())
    throw ConfigError("data.path = \"" + o.path + "\", but " + o.set + " is not read from a path");
}

void limit(Split& split, int64_t count, const std::string& key, const DatasetEntry& entry) {
  if (count == 0 || entry.any_size) return;
  if (count > split.size())
    throw ConfigError(fmt::format("data.{} = {}, but {} has only {}", key, count, entry.name, split.size()));
  split = take(split, hashed_subset(split, count));
}

void take_validation(Dataset& data, double share) {
  const auto [inside, outside] = validation_share(data.train, share);
  if (inside.numel() == 0 || outside.numel() == 0)
    throw ConfigError(fmt::format("data.validation = {} leaves {} training and {} validation examples of {}",
                                  share, outside.numel(), inside.numel(), data.name));
  data.validation = take(data.train, inside);
  data.train = take(data.train, outside);
}

/// Exact: the sums run over counts of byte values.
void measure_bytes(Dataset& data) {
  const Split& train = data.train;
  const int64_t n = train.size(), channels = train.inputs.size(1), plane = train.inputs[0][0].numel();
  const auto* pixels = train.inputs.const_data_ptr<uint8_t>();
  for (int64_t c = 0; c < channels; ++c) {
    std::array<int64_t, 256> counts{};
    for (int64_t i = 0; i < n; ++i) {
      const uint8_t* channel = pixels + (i * channels + c) * plane;
      for (int64_t p = 0; p < plane; ++p) ++counts[channel[p]];
    }
    double sum = 0, squares = 0;
    for (int v = 0; v < 256; ++v) sum += static_cast<double>(counts[v]) * v;
    const double total = static_cast<double>(n * plane), mean = sum / total;
    for (int v = 0; v < 256; ++v) squares += static_cast<double>(counts[v]) * (v - mean) * (v - mean);
    if (squares == 0)
      throw DataError(fmt::format("{}: channel {} is constant over the training split", data.name, c));
    data.mean.push_back(mean / 255);
    data.std.push_back(std::sqrt(squares / total) / 255);
  }
}

/// The same of numbers, in float64.
void measure_numbers(Dataset& data) {
  const at::Tensor& inputs = data.train.inputs;
  const int64_t channels = inputs.dim() > 1 ? inputs.size(1) : 1;
  const at::Tensor columns = inputs.reshape({inputs.size(0), channels, -1});
  for (int64_t c = 0; c < channels; ++c) {
    const at::Tensor values = columns.select(1, c).to(at::kDouble);
    const auto mean = values.mean().item<double>(),
               std = (values - mean).square().mean().sqrt().item<double>();
    if (values.min().equal(values.max()))  // std may be a rounding
      throw DataError(fmt::format("{}: channel {} is constant over the training split", data.name, c));
    data.mean.push_back(mean);
    data.std.push_back(std);
  }
}

void fill_levels(Dataset& data) {
  const int64_t channels = data.train.inputs.size(1);
  data.levels = at::empty({channels, 256}, at::kDouble);
  auto* level = data.levels.mutable_data_ptr<double>();
  for (int64_t c = 0; c < channels; ++c) {
    const auto at = static_cast<size_t>(c);
    const double mean = data.mean.empty() ? 0 : data.mean[at], std = data.std.empty() ? 1 : data.std[at];
    for (int v = 0; v < 256; ++v) *level++ = (static_cast<double>(v) / 255 - mean) / std;
  }
}

void normalise(Dataset& data, const DataOptions& options) {
  const bool pictures = data.train.has_pictures();
  const bool integers = !pictures && !data.train.inputs.is_floating_point();
  if (options.normalise == "channels" && integers)
    throw ConfigError(
        fmt::format("data.normalise = \"channels\", but the inputs of {} are integers", data.name));
  if (options.normalise == "channels" || (options.normalise == "auto" && pictures))
    pictures ? measure_bytes(data) : measure_numbers(data);
  if (pictures) fill_levels(data);
}

}  // namespace

void bind_options(OptionTable& table, DataOptions& options) {
  table.within({.is_yardstick = true}, [&](OptionTable& t) {
    t.add("set", options.set, one_of(names_of(dataset_registry())), "data set").costs();
    t.add("path", options.path, anything(),
          "folder or official archive; empty for embedded and synthetic sets")
        .execution();
    t.add("normalise", options.normalise, one_of({"auto", "channels", "none"}),
          "inputs less their mean over the training split, over their standard deviation, by channel (axis "
          "1); auto: pictures are, numbers "
          "stay as they are")
        .quiet_default();
    t.add("classes", options.classes, at_least(0),
          "of arrays: number of classes, where the largest don't occur; 0: the largest label plus one")
        .quiet_default();
    t.add("validation", options.validation, half_open(0, 1),
          "share of the training set held out for validation, chosen by a hash of the inputs' bytes; of "
          "texts its "
          "end");
    t.add("tokens", options.tokens, one_of({"characters", "bytes"}),
          "of texts: what is read as a token; the characters that occur (UTF-8), or any of 256 bytes")
        .quiet_default();
    t.add("context", options.context, at_least(1), "of texts: tokens in a window, which is an example")
        .costs()
        .quiet_default();
    t.add("stride", options.stride, at_least(0),
          "of texts: tokens from one training window's start to the next; 0: as many as are in a window; 1: "
          "every place")
        .quiet_default();
    t.add("test_share", options.test_share, between(1e-6, 0.999999),
          "of texts: share that the test split has, the end")
        .quiet_default();
    t.add("train_examples", options.train_examples, at_least(0),
          "number of training examples, the first in order of hash; 0: all");
    t.add("test_examples", options.test_examples, at_least(0),
          "number of test examples, the first in order of hash; 0: all");
    t.add("augmentation", options.augmentation, one_of({"none", "crop_flip"}),
          "random crop with padding, flip and cutout")
        .costs();
    t.add("padding", options.padding, at_least(0), "pixels around the image before the random crop");
    t.add("padding_mode", options.padding_mode, one_of({"zeros", "reflect"}),
          "padded pixels: the mean colour (zeros), or the image mirrored at its border (reflect)");
    t.add("flip", options.flip, one_of({"random", "alternating", "none"}),
          "alternating: each image is flipped in every other epoch");
    t.add("cutout", options.cutout, at_least(0),
          "side of a square of the mean colour at a random place; 0: none");
  });
}

Dataset load_dataset(const DataOptions& options) {
  const DatasetEntry& entry = find_entry(dataset_registry(), options.set, "data set");
  check_path(entry, options);
  Dataset data = entry.read(options);
  if (options.validation > 0 && !entry.takes_validation) take_validation(data, options.validation);
  limit(data.train, options.train_examples, "train_examples", entry);
  limit(data.test, options.test_examples, "test_examples", entry);
  check_augmentation(options, data.train);
  normalise(data, options);
  data.split_hash = sha256_hex(data.train.source_index.const_data_ptr(), data.train.source_index.nbytes());
  return data;
}

}  // namespace basin
