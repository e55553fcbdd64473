// defines: Muon, momentum orthogonalised matrix by matrix.
#pragma once

#include <string>
#include <vector>

#include "optim/exclusion.h"
#include "optim/optimizer.h"

namespace basin {

struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  std::string orthogonalise = "newton_schulz";  // newton_schulz | exact
  int64_t iterations = 5;
  std::string adjust = "rms";  // rms | spectral
  Exclusions by_adam = default_exclusions();
  double adam_rate = 1, beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0;
  Exclusions exclude_from_decay = default_exclusions();
  Factors lr_factors, decay_factors;
};
void bind_options(OptionTable& table, MuonOptions& options);

/// Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon; as torch.optim.Muon). For a matrix W [r, c], filters of a convolution
/// as [out, in kernel kernel]:
///   M <- momentum M + (1 - momentum) G;   D = momentum M + (1 - momentum) G with Nesterov, else M
///   W <- W - lr wd W - lr s O(D),   O(D) = U V' for D = U S V'.
/// O is that to within some 30 % of each singular value by five Newton-Schulz iterations X <- a X + (b XX' + c (XX')^2) X from D / |D|_F
/// with (a, b, c) = (3.4445, -4.7750, 2.0315), or exact, by an SVD. s = sqrt(max(1, r/c)) keeps the spectral norm ("spectral", the
/// speedrun's), s = 0.2 sqrt(max(r, c)) the root mean square that AdamW's steps have ("rms", Liu et al. 2025, arXiv 2502.16982,
/// eq. 4), so that one rate suits both.
///
/// Parameters with fewer than two dimensions, and those of `by_adam`, go by AdamW at adam_rate times the rate. Iterations are in the
/// weights' own type, where torch has bfloat16. Cost: per matrix 2 iterations (2 r c min(r, c) + min(r, c)^3) multiplications, memory
/// one vector for matrices and two for the rest. Can go wrong: singular values of D below some 1e-3 of its norm stay small in five
/// iterations; steps don't shrink with the gradient.
class Muon : public Optimizer {
 public:
  Muon(std::vector<ParameterInfo> parameters, const MuonOptions& options);
  /// NaN: O is no diagonal.
  std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& /*gradients*/) const override {
    return no_diagonal();
  }
  double stability_limit() const override { return NAN; }

 private:
  void update(TensorLists& lists) override;
  bool is_matrix(size_t i) const { return !goes_by_adam_[i]; }
  at::Tensor matrix_direction(size_t i, const at::Tensor& gradient);
  at::Tensor adam_direction(size_t i, const at::Tensor& gradient);

  MuonOptions options_;
  std::vector<bool> goes_by_adam_;
};

/// U V' of a matrix U S V', nearly (see above). `matrix` has two dimensions.
at::Tensor newton_schulz(const at::Tensor& matrix, int64_t iterations);

}  // namespace basin
