// defines: Shampoo, gradients preconditioned by a matrix along each dimension.
#pragma once

#include <string>
#include <vector>

#include "optim/exclusion.h"
#include "optim/matrix/kronecker_optimizer.h"

namespace basin {

struct ShampooOptions {
  double momentum = 0.9;
  std::string accumulation = "sum";  // sum | average
  double beta2 = 0.95;
  double exponent = 0;  // 0: 1 / (2 dimensions)
  double eps = 1e-6;
  int64_t precondition_frequency = 1;
  int64_t max_dimension = 512;
  double weight_decay = 0;
  Exclusions exclude_from_decay = default_exclusions();
  Factors lr_factors, decay_factors;
};
void bind_options(OptionTable& table, ShampooOptions& options);

/// Shampoo (Gupta, Koren & Singer 2018, arXiv 1802.09568, algorithm 1 for matrices, 2 for tensors of k dimensions). For W [r, c]:
///   L <- L + G G' [r, r],   R <- R + G' G [c, c];   M <- momentum M + (1 - momentum) G
///   W <- W - lr (L + eps I)^-p M (R + eps I)^-p - lr wd W,   p = 1/4;   p = 1/(2k) with k matrices, 1/2 for vectors.
/// The variant is the paper's plain one: sums, no grafting of another method's step length, no blocks. `exponent` gives another p:
/// 1/2 is the Kronecker product that approximates Adagrad's own exponent best (Morwani et al. 2024, arXiv 2406.17748).
/// accumulation = "average": S <- beta2 S + (1 - beta2) G G', over 1 - beta2^t, so that steps don't shrink with the sum. A dimension
/// above max_dimension has the diagonal of its statistic alone, as the paper proposes. Momentum is of the raw gradient, before
/// the matrices, which are of raw gradients too.
///
/// Roots are taken in float64 by an eigendecomposition, at updates 1, 1 + f, 1 + 2f, ..., f = precondition_frequency. Cost: per root
/// about 10 n^3, per update numel times twice the sum of the dimensions; memory 2 n^2 for each dimension and a vector. Can go wrong:
/// with sums steps fall as 1/sqrt(t) whatever the schedule; lr has no scale that Adam's or SGD's would fit; eps against tiny gradients
/// is all that there is of P.
class Shampoo : public KroneckerOptimizer {
 public:
  Shampoo(std::vector<ParameterInfo> parameters, const ShampooOptions& options);
  /// (L + eps I)^p x (R + eps I)^p: products of eigenvalues in the basis of eigenvectors.
  std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& gradients) const override;
  std::vector<KroneckerFactors> preconditioner_bases() const override;
  /// 2 (1 + momentum) / (1 - momentum), as Adam's.
  double stability_limit() const override { return 2 * (1 + options_.momentum) / (1 - options_.momentum); }

 private:
  void update(TensorLists& lists) override;
  void learn(size_t i, const at::Tensor& gradient);
  void take_roots(size_t i);
  at::Tensor preconditioned(size_t i, const at::Tensor& tensor) const;

  ShampooOptions options_;
};

}  // namespace basin
