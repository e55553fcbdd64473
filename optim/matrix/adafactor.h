// defines: Adafactor, a factored second moment, clipped updates and steps in shares of the weights.
#pragma once

#include <string>
#include <vector>

#include "optim/exclusion.h"
#include "optim/optimizer.h"

namespace basin {

struct AdafactorOptions {
  double beta1 = 0;
  double decay_rate = 0.8;
  double eps1 = 1e-30, eps2 = 1e-3;
  double clip_threshold = 1;
  bool scale_parameter = true, relative_step = false;
  std::string factored = "matrix";  // matrix | last_two
  double weight_decay = 0;
  Exclusions exclude_from_decay = default_exclusions();
  Factors lr_factors, decay_factors;
};
void bind_options(OptionTable& table, AdafactorOptions& options);

/// Adafactor (Shazeer & Stern 2018, arXiv 1804.04235, algorithms 4 and 5). For a matrix W [r, c], at update t = 1, 2, ...
///   beta2 = 1 - t^-decay_rate;   V = beta2 V + (1 - beta2) (G^2 + eps1), of which only means are kept:
///   R [r, 1] over rows, C [1, c] over columns;   V^ = R C / mean(R);   U = G / sqrt(V^)
///   W <- W - rho s U - lr wd W,   s = max(eps2, RMS(W)) / max(1, RMS(U) / clip_threshold),   rho = lr.
/// relative_step: rho = min(lr, 1/sqrt(t)), with lr = 0.01 the paper's. scale_parameter = false: 1 for max(eps2, RMS(W));
/// clip_threshold = 0: no clip. Vectors have all of V. With beta1 a moving average of clipped U in U's place.
///
/// Filters of a convolution [out, in kernel kernel] are a matrix ("matrix"), or each kernel is one ("last_two", as torch.optim.Adafactor
/// and transformers have it: the factors of a 3 x 3 kernel are 2/3 of it). As in the paper, transformers and pytorch-optimizer eps1
/// is added to the squares, where torch bounds V^ from below. The decay is of the weights before the update and by lr, as torch's.
///
/// s is reported as the trust ratio. Shapes: R and C as above, [..., r, 1] and [..., 1, c] with last_two. Cost: some ten passes;
/// memory r + c numbers for a matrix, one vector more with beta1. Can go wrong: a weight whose row and column have large gradients
/// is stepped as if it had too, and one that starts at 0 moves by eps2 lr at first.
class Adafactor : public Optimizer {
 public:
  Adafactor(std::vector<ParameterInfo> parameters, const AdafactorOptions& options);
  std::string trust_ratio_definition() const override;
  /// sqrt(V^) over s, and over rho / lr with relative_step: where lr isn't known, as of a checkpoint, that is NaN.
  std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& gradients) const override;
  /// NaN: P moves with the gradient.
  double stability_limit() const override { return NAN; }
  /// 2 (1 + beta1) / (1 - beta1), as Adam's.
  double frozen_stability_limit() const override { return 2 * (1 + options_.beta1) / (1 - options_.beta1); }

 private:
  void update(TensorLists& lists) override;
  void learn(size_t i, const at::Tensor& gradient);
  /// 1 / sqrt(V^), shaped as the parameter.
  at::Tensor inverse_root(size_t i) const;
  double scale_of(const at::Tensor& weights) const;
  double clip_of(const at::Tensor& direction) const;  // what it is divided by
  double rate_of(size_t i, int64_t update) const;
  at::Tensor folded(const at::Tensor& tensor) const;

  AdafactorOptions options_;
};

}  // namespace basin
