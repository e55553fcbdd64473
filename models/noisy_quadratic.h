// defines: NoisyQuadratic, the quadratic loss whose training is known in closed form.
#pragma once

#include "core/options.h"
#include "models/model.h"

namespace basin {

struct NoisyQuadraticOptions {
  double power = 1;         // h_i = i^-power
  double precondition = 0;  // p of P = H^p
};
void bind_options(OptionTable& table, NoisyQuadraticOptions& options);

/// The noisy quadratic model of Zhang et al. 2019 (arXiv 1907.04164, section 3), as a network: with loss =
/// "mse" and data.set = "coin_flips" the mean loss over the N training examples x (one coordinate per
/// class, mean 0, variance 1) is
///     L(theta) = 1/N sum_x 1/2 sum_i (sqrt(h_i) theta_i - x_i)^2 = d/2 + 1/2 sum_i h_i theta_i^2,
///     h_i = i^-power,
/// so its minimum is d/2 at theta = 0, its Hessian H = diag(h), and the gradient of one example has
/// covariance H (but for the correlations between coordinates that N examples leave by chance, of order
/// 1/sqrt(N)): their choice C = H. theta_i starts at +1 or -1, from the seed stream "init": the second moment
/// of a standard normal start, without its scatter. d is the number of classes; every label of coin_flips is
/// 0, and the logits
///     f_i = sqrt(h_i) theta_i + [i = 0] - x_i
/// make good for the one-hot target. On other data x is the first d pixel values, and the loss is some other
/// quadratic.
///
/// Preconditioning, exactly. The parameter is phi = P^(1/2) theta with P = H^p, p = `precondition`. A step of
/// SGD, with momentum or not, on phi is theta <- theta - rate P^-1 g(theta): the paper's preconditioned
/// update. What the optimiser and the probes see is the quadratic of phi: Hessian and noise covariance are
/// both H^(1-p).
///
/// Cost: d multiplications per example. The closed form of the expected loss is in docs/noisy-quadratic.md.
/// With another loss than mse nothing of this holds; accuracy means nothing here.
class NoisyQuadratic : public Model {
 public:
  /// ConfigError where images have fewer pixels than there are classes.
  NoisyQuadratic(const NoisyQuadraticOptions& options, const InputShape& shape, at::Generator& init);
  at::Tensor forward(const at::Tensor& images) override;

 private:
  at::Tensor phi_;                                 // [1, d]
  at::Tensor slope_;                               // [1, d] float64: df/dphi = h^((1-p)/2)
  at::Tensor first_target_;                        // [1, d] float64: [i = 0]
  at::Tensor slope_as_phi_, first_target_as_phi_;  // of phi's type, on its device
};

}  // namespace basin
