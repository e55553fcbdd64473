// defines: Augmentation, random crop with padding, horizontal flip and cutout.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "data/dataset.h"

namespace basin {

/// The random changes to one image.
struct AugmentationDraw {
  int64_t dy, dx;  // in [-padding, padding]
  bool flip;
  int64_t cut_y, cut_x;  // corner of the square that is cut out
};

/// output[i, :, y, x] = input[i, :, y + dy, x' + dx] with x' = flip ? W-1-x : x; outside of the image 0
/// (after normalisation: the mean colour) or, padding_mode = "reflect", its mirror image about the border
/// pixels (-1 is 1, H is H-2); and 0 in the square of side `cutout` (DeVries & Taylor 2017, arXiv 1708.04552)
/// at (cut_y, cut_x), wholly inside.
///
/// Drawn from an example's stream position p alone, hence independent of batch and micro-batch size, by
/// SplitMix64 (Steele, Lea and Flood 2014): dy, dx and the random flip at counters 3p, 3p+1, 3p+2 from
/// derive_seed(master_seed, "augmentation"), the square at 2p, 2p+1 from "cutout"; each but the flip by
/// multiply and shift of the upper 32 bits (uneven by 2^-32 at most). flip = "alternating" (Jordan 2024,
/// arXiv 2404.00498): a coin for each example, at counter `example` from "flip", turned over in
/// every odd epoch of the stream, so that two epochs in a row show each image both ways.
///
/// Cost on the CPU: a loop over memory, a few microseconds per image.
class Augmentation {
 public:
  Augmentation(const DataOptions& options, uint64_t master_seed, const Split& train);

  bool on() const { return on_; }
  AugmentationDraw draw(int64_t position, int64_t example) const;
  /// draw() of the examples at those stream positions, by their indices in the training split: int64 [5, n]
  /// on the CPU, rows dy, dx, flip, cut_y, cut_x.
  at::Tensor draws(const std::vector<int64_t>& positions, const std::vector<int64_t>& examples) const;
  /// inputs [n, C, H, W] floats on any device, with their draws; a new tensor of the same layout. The loop
  /// on the CPU, the gather below elsewhere.
  at::Tensor apply(const at::Tensor& inputs, const at::Tensor& draws) const;
  /// The same by indexing on the device of both, where nothing waits for the host; ten times slower on the
  /// CPU.
  at::Tensor apply_by_gather(const at::Tensor& inputs, const at::Tensor& draws) const;

 private:
  enum class Flip { none, random, alternating };
  bool flips(int64_t position, int64_t example) const;
  int64_t source(int64_t index, int64_t size) const;
  at::Tensor sources(const at::Tensor& index, int64_t size) const;
  template <class T>
  void fill_image(const T* from, T* to, const AugmentationDraw& draw) const;

  bool on_, reflect_;
  Flip flip_;
  int64_t padding_, cutout_;
  int64_t epoch_examples_, channels_, height_, width_;
  uint64_t shift_seed_, flip_seed_, cutout_seed_;
};

/// ConfigError where padding or cutout don't fit the images.
void check_augmentation(const DataOptions& options, const Split& train);

}  // namespace basin
