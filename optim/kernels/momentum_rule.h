// defines: MomentumRule, from which norms and axes the coefficients of SGD, LARS and LARC come.
#pragma once

#include "optim/kernels/elementwise.h"

namespace basin {

/// How gradient, momentum, decay, learning rate and trust ratio are put together: the axes on which implementations of LARS
/// differ (optim/lars.h has them as options, docs/optimizers.md the presets). SGD is the rule without `adaptive`.
/// The learning rate is the tensor's own, StepScalars::rate_of(). Plain data, for a GPU evaluates it too.
struct MomentumRule {
  enum class Denominator {
    gradient_plus_decay,
    decayed_gradient,
    decayed_gradient_plus_decay,
    gradient,
    momentum
  };

  double momentum = 0, dampening = 0;
  bool nesterov = false;
  bool rate_inside = false;  // the buffer holds steps, not gradients
  bool decoupled = false;    // decay apart from the step, not in the gradient
  double limit = INFINITY;   // of each element of the gradient, decay included

  bool adaptive = false;
  double coefficient = 1, eps = 0;
  Denominator denominator = Denominator::gradient_plus_decay;
  bool ratio_inside = true;
  double ratio_max = INFINITY;
  bool clip_to_rate = false;    // LARC: min(ratio / rate, 1)
  double excluded_ratio = 1;    // of a tensor without trust ratio
  double degenerate_ratio = 1;  // where norms of 0 leave no ratio
  bool needs_gradient = false;  // a gradient of 0 leaves none either, whatever is added to it below
  bool degenerate_drops_decay = false;

  /// Optimizer::gain().
  double gain() const { return momentum == 0 ? 1 : (1 - dampening) / (1 - momentum); }

  /// The ratio is of the buffer, so the buffer comes before it.
  BASIN_HOST_DEVICE bool buffer_first() const { return adaptive && denominator == Denominator::momentum; }

  BASIN_HOST_DEVICE double norm_below(const TensorSums& sums, const Treatment& tensor) const {
    const double decayed = tensor.decay * std::sqrt(sums.weight);
    switch (denominator) {
      case Denominator::gradient_plus_decay:
        return std::sqrt(sums.gradient) + decayed + eps;
      case Denominator::decayed_gradient_plus_decay:
        return std::sqrt(sums.direction) + decayed + eps;
      case Denominator::gradient:
        return std::sqrt(sums.gradient) + eps;
      default:
        return std::sqrt(sums.direction) + eps;  // of g + wd w, or of the buffer
    }
  }
  BASIN_HOST_DEVICE bool degenerate(const TensorSums& sums, const Treatment& tensor) const {
    const bool decayed = denominator == Denominator::decayed_gradient ||
                         denominator == Denominator::decayed_gradient_plus_decay;
    return sums.weight == 0 || norm_below(sums, tensor) == 0 ||
           (needs_gradient && (decayed ? sums.direction : sums.gradient) == 0);
  }
  BASIN_HOST_DEVICE double ratio(const TensorSums& sums, const Treatment& tensor,
                                 const StepScalars& step) const {
    if (!adaptive) return 1;
    if (!tensor.trust) return excluded_ratio;
    if (degenerate(sums, tensor)) return degenerate_ratio;
    const double unlimited = coefficient * (std::sqrt(sums.weight) / norm_below(sums, tensor));
    const double ratio = unlimited > ratio_max ? ratio_max : unlimited;  // NaN passes
    return clip_to_rate ? clipped(ratio, step.rate_of(tensor)) : ratio;
  }

  BASIN_HOST_DEVICE MomentumElement<double> element(double ratio, const TensorSums& sums,
                                                    const Treatment& tensor, const StepScalars& step) const {
    const bool drops = degenerate_drops_decay && adaptive && tensor.trust && degenerate(sums, tensor);
    const double decay = drops ? 0 : tensor.decay, rate = step.rate_of(tensor);
    const double inside = (rate_inside ? rate : 1) * (ratio_inside ? ratio : 1);
    const double outside = (rate_inside ? 1 : rate) * (ratio_inside ? 1 : ratio);
    MomentumElement<double> e;
    e.limit = limit;
    e.decay = decoupled ? 0 : decay;
    e.shrink = decoupled ? rate * decay : 0;
    if (momentum == 0) {
      e.direct = inside * outside;
      return e;
    }
    e.keep = momentum;
    e.add = (1 - dampening) * inside;
    e.buffer = nesterov ? outside * momentum : outside;
    e.direct = nesterov ? outside : 0;
    return e;
  }

 private:
  BASIN_HOST_DEVICE static double clipped(double ratio, double rate) {
    return ratio > rate ? 1 : (rate == 0 ? ratio : ratio / rate);
  }
};

}  // namespace basin
