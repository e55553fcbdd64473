// defines: Dataset, three splits resident in memory; DataOptions; subsets by hash.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace basin {

/// Examples as they lie in the files. inputs: pictures, uint8 [n, C, H, W], or numbers, float32, float64 or int64 [n, ...], of which each
/// example lies in one piece (windows of a text overlap); labels: one class, int64 [n], a class for each token, int64 [n, T], or
/// numbers, float32 or float64 [n, k]; `source_index` int64 [n] is the position in the split that the example was read from (so a validation share
/// remains traceable).
struct Split {
  at::Tensor inputs, labels, source_index;
  bool has_pictures() const { return inputs.scalar_type() == at::kByte; }
  int64_t size() const { return labels.defined() ? labels.size(0) : 0; }
};

/// Dataset::pixels of contents that are no known copy. What a set's copies are called is the set's own affair.
inline constexpr const char* kUnverified = "unverified";

struct Dataset {
  std::string name;    // "cifar10-5k"
  std::string pixels;  // "official", "jpeg copy", "synthetic", kUnverified: always said with a result
  std::vector<std::string> class_names;
  Split train, validation, test;
  // Per channel (axis 1) of the training split, of pixel/255 or of the numbers; what inputs are normalised by. Empty: they aren't.
  std::vector<double> mean, std;
  at::Tensor levels;       // of pictures, float64 [C, 256]: what byte v of a channel is as an input
  std::string sha256;      // of the contents of all files read, end to end in manifest order
  std::string split_hash;  // SHA-256 over the training split's source_index (int64, little-endian)
  int64_t classes() const { return static_cast<int64_t>(class_names.size()); }
  /// What a network puts out per example or token: one for each class, or for each number to predict.
  int64_t outputs() const { return class_names.empty() ? train.labels.size(1) : classes(); }
};

struct DataOptions {
  std::string set = "cifar10-5k";      // a registry name
  std::string path;                    // folder or official archive; empty for embedded and synthetic sets
  std::string normalise = "auto";      // auto | channels | none
  int64_t classes = 0;                 // of arrays: how many there are; 0: the largest label plus one
  std::string tokens = "characters";   // of texts: characters | bytes
  int64_t context = 64;                // of texts: tokens in a window
  int64_t stride = 0;                  // of texts: tokens from one window's start to the next; 0: context
  double test_share = 0.1;             // of texts: the last part
  double validation = 0.0;             // share of the training set, chosen by a hash of the inputs' bytes
  int64_t train_examples = 0;          // 0: all; else the first n of the training split by image hash
  int64_t test_examples = 0;           // likewise
  std::string augmentation = "none";   // none | crop_flip; the rest is of crop_flip (data/augmentation.h)
  int64_t padding = 4;                 // of the random crop
  std::string padding_mode = "zeros";  // zeros | reflect
  std::string flip = "random";         // random | alternating | none
  int64_t cutout = 0;                  // side of the square that is cut out; 0: none
};
/// The `count` examples of a split with the smallest SHA-256 of their inputs' bytes and label (after them; one byte, or eight from
/// 256 classes on; labels of other kinds as they lie), ascending index: a subset that depends on the data alone. count = 0 or >= size: all. Cost: one hash
/// per example.
at::Tensor hashed_subset(const Split& split, int64_t count);
/// SHA-256 over the chosen examples' bytes, each as above, in the order of `index`; recorded as `subset_hash`.
std::string subset_hash(const Split& split, const at::Tensor& index);

/// Those examples as a split of their own.
Split take(const Split& split, const at::Tensor& index);
/// int64 index of the examples inside and outside of the validation share.
std::pair<at::Tensor, at::Tensor> validation_share(const Split& split, double share);

}  // namespace basin
