// defines: Soap, Adam in the eigenbasis of Shampoo's statistics.
#pragma once

#include <string>
#include <vector>

#include "optim/exclusion.h"
#include "optim/matrix/kronecker_optimizer.h"

namespace basin {

struct SoapOptions {
  double beta1 = 0.95, beta2 = 0.95, eps = 1e-8;
  int64_t precondition_frequency = 10;
  int64_t max_dimension = 2048;
  bool precondition_vectors = false, skip_first = false;
  double weight_decay = 0.01;
  Exclusions exclude_from_decay = default_exclusions();
  Factors lr_factors, decay_factors;
};
void bind_options(OptionTable& table, SoapOptions& options);

/// SOAP (Vyas et al. 2024, arXiv 2409.11321, algorithm 3, as the authors' code has it). For W [r, c], Q_L and Q_R orthogonal:
///   M <- beta1 M + (1 - beta1) G;   G~ = Q_L' G Q_R;   V <- beta2 V + (1 - beta2) G~^2, in the basis
///   N = Q_L' M Q_R / (1 - beta1^t) / ((sqrt(V) + eps) / sqrt(1 - beta2^t));   W <- W - lr Q_L N Q_R' - lr wd W
///   L <- beta2 L + (1 - beta2) G G',   R <- beta2 R + (1 - beta2) G' G
/// and after every precondition_frequency updates one step of a power iteration: the columns of Q_L, and V with them, sorted by
/// the diagonal of Q_L' L Q_L, then Q_L <- QR(L Q_L), likewise Q_R. At first L, R are of the first gradient and Q their eigenvectors.
/// Tensors of more dimensions have a matrix along each (kernels of convolutions too), without merging. A dimension above
/// max_dimension has none (the code's default is 10,000: minutes of eigendecompositions on a CPU), nor have vectors without
/// precondition_vectors: all identity, that is Adam.
///
/// As in the code, eps is added before the correction of V, and an element with M = 0 has N = 0 as in our Adam. The code makes no
/// step of the first gradient, because its basis is made of it (skip_first = true); where a run has few updates each counts, so the
/// default takes it. The decay is of the weights before the update, where the code decays those after it.
///
/// Matrices are decomposed in float64 and stored in the weights' type. Cost: four products of a tensor with its bases an update and
/// two Gram matrices, 2 numel (sum of dimensions) each; QR now and then; memory two vectors and 2 n^2 for each dimension. Can go wrong:
/// where L is degenerate, as of fewer gradients than it has rows, rounding decides what the basis is there, and Adam in another
/// basis steps elsewhere: another micro_batch may give another run.
class Soap : public KroneckerOptimizer {
 public:
  Soap(std::vector<ParameterInfo> parameters, const SoapOptions& options);
  /// Adam's denominator, in the bases of the last step.
  std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& gradients) const override;
  std::vector<KroneckerFactors> preconditioner_bases() const override;
  /// 2 (1 + beta1) / (1 - beta1), as Adam's.
  double stability_limit() const override { return 2 * (1 + options_.beta1) / (1 - options_.beta1); }

 private:
  void update(TensorLists& lists) override;
  void begin(size_t i, const at::Tensor& gradient);
  void learn(size_t i, const at::Tensor& gradient);
  void refresh(size_t i);
  at::Tensor direction(size_t i, const at::Tensor& gradient);
  at::Tensor denominator(size_t i, int64_t steps) const;
  int64_t steps_taken() const { return updates_done() - (options_.skip_first ? 1 : 0); }

  SoapOptions options_;
};

}  // namespace basin
