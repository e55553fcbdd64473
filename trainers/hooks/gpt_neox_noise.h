// defines: GptNeoxNoise, the gradient noise scale as GPT-NeoX logs it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "trainers/hooks/weight_copy.h"

namespace basin {

/// From the gradients of successive updates, each of a batch of B_s: every n of them their mean stands for a
/// batch of B_b = n B_s and the last one for itself, and
///   noise = (B_b |g_b|^2 - B_s |g_s|^2) / (B_b - B_s),   scale = (|g_s|^2 - |g_b|^2) / (1/B_s - 1/B_b)
/// go into an exponential average each, beta of the old, divided by 1 - beta^(i+1); B_simple = scale / noise.
///
/// Its quirks, kept: `noise` is |G|^2 and `scale` tr Sigma; i counts gradients where the averages take one
/// number in n, so both logged averages are too small early on (the ratio is not); weights move within a
/// window; norms are float32, and where one overflows nothing is counted, so that the *next* gradient alone,
/// divided by n, is taken for the mean of a window. A gradient that isn't finite is passed over. There is no
/// error.
///
/// Cost: one copy of the gradient, one pass to add and one for its norm at every update, and on a GPU a wait.
class GptNeoxNoise {
 public:
  struct Numbers {
    double b_simple = NAN, noise = NAN, scale = NAN;  // the averages, as logged; NaN where a norm overflowed
    double small_square = NAN, big_square = NAN;      // |g_s|^2, |g_b|^2
  };
  /// `parameters`: shapes and names of the gradients.
  GptNeoxNoise(const std::vector<ParameterInfo>& parameters, int64_t batch_size, int64_t n_batches,
               double beta);

  /// At the end of a window its numbers.
  std::optional<Numbers> add(const std::vector<at::Tensor>& gradients);

  std::vector<double> state() const { return {static_cast<double>(count_), noise_, scale_}; }
  NamedTensors sum() const { return sum_.state(); }
  void load_state(const std::vector<double>& state, const NamedTensors& sum);

 private:
  double averaged(double& average, double value) const;
  double small_size_, n_batches_, beta_;
  int64_t window_, count_ = 0;
  double noise_ = 0, scale_ = 0;  // averages before the division
  WeightCopy sum_;                // of the window's gradients
};

}  // namespace basin
