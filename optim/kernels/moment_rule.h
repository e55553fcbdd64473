// defines: MomentRule, from which norms and axes the coefficients of Adam, AdamW, LAMB and LAMBC come.
#pragma once

#include "optim/kernels/elementwise.h"

namespace basin {

/// How moments, bias correction, decay, learning rate and trust ratio are put together: the axes on which implementations of
/// LAMB differ (optim/lamb.h has them as options, docs/optimizers.md the presets). Adam is the rule without `adaptive`.
/// The learning rate is the tensor's own, StepScalars::rate_of(). Plain data, for a GPU evaluates it too.
struct MomentRule {
  enum class Correction { moments, none, rate, rate_first };           // rate: of the step's length alone
  enum class Decay { update, decoupled, decoupled_before, gradient };  // before: ahead of the norms

  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  Correction correction = Correction::moments;
  Decay decay = Decay::update;
  double max_gradient_norm = 0, clip_eps = 0;  // of all gradients as one vector; 0: gradients as they are
  bool normalise_gradient = false;             // to norm 1, all as one vector

  bool adaptive = false;
  double weight_norm_min = 0, weight_norm_max = INFINITY;  // phi
  double ratio_eps = 0, ratio_max = INFINITY;

  BASIN_HOST_DEVICE bool needs_gradient_norm() const { return max_gradient_norm > 0 || normalise_gradient; }
  BASIN_HOST_DEVICE double gradient_factor(const StepScalars& step) const {
    if (!needs_gradient_norm() || step.gradient_norm == 0) return 1;
    if (normalise_gradient) return 1 / step.gradient_norm;
    const double factor = max_gradient_norm / (step.gradient_norm + clip_eps);
    return factor < 1 ? factor : 1;
  }

  BASIN_HOST_DEVICE double ratio(const TensorSums& sums, const Treatment& tensor,
                                 const StepScalars& step) const {
    if (!adaptive || !tensor.trust) return 1;
    const double shrunk = decay == Decay::decoupled_before ? 1 - step.rate_of(tensor) * tensor.decay : 1;
    const double norm = std::fabs(shrunk) * std::sqrt(sums.weight);
    const double low = norm < weight_norm_min ? weight_norm_min : norm;
    const double phi = low > weight_norm_max ? weight_norm_max : low;
    if (phi == 0 || sums.direction == 0) return 1;
    const double ratio = phi / (std::sqrt(sums.direction) + ratio_eps);
    return ratio > ratio_max ? ratio_max : ratio;
  }

  BASIN_HOST_DEVICE MomentElement<double> element(double ratio, const Treatment& tensor,
                                                  const StepScalars& step) const {
    const double root2 = std::sqrt(step.correction2), rate = step.rate_of(tensor);
    MomentElement<double> e;
    e.gradient = gradient_factor(step);
    e.l2 = decay == Decay::gradient ? tensor.decay : 0;
    e.beta1 = beta1;
    e.beta2 = beta2;
    e.new1 = 1 - beta1;
    e.new2 = 1 - beta2;
    e.second = correction == Correction::moments ? step.correction1 / root2 : 1;
    e.eps = correction == Correction::moments ? eps * step.correction1 : eps;
    e.decay = decay == Decay::update ? tensor.decay : 0;
    e.shrink = decay == Decay::decoupled || decay == Decay::decoupled_before ? rate * tensor.decay : 0;
    e.rate = rate * ratio * rate_correction(step);
    return e;
  }

  /// Factor on the learning rate.
  BASIN_HOST_DEVICE double rate_correction(const StepScalars& step) const {
    if (correction == Correction::rate) return std::sqrt(step.correction2) / step.correction1;
    return correction == Correction::rate_first ? 1 / step.correction1 : 1;
  }
};

}  // namespace basin
