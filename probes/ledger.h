// defines: the probe ledger.
#pragma once

#include <memory>
#include <string>

#include "probes/probe.h"

namespace basin {

struct LedgerOptions {
  std::string estimator = "per_example";  // of the noise: or paired
  double tolerance = 0.02;                // of lambda_1, relative
  double step_tolerance = 0.02;           // of the critical learning rate, relative
  bool b_hessian = true;                  // costs as much as all else together
};
void bind_options(OptionTable& table, LedgerOptions& options);

/// What limits the run's next update: curvature, noise, or neither, so that more updates are wanting. In eval mode, with the
/// examples measured, n of the N training examples; G their mean gradient, P the optimiser's preconditioner, eta the learning
/// rate of the checkpoint's last update, B its batch size.
///   curvature_over_limit = eta lambda_1(P^{-1} H) / limit, limit Optimizer::frozen_stability_limit(): for LARS and LAMB, whose
///     P moves with the gradient, a gauge and no limit;
///   noise_over_gradient = E|g_B - G|^2 / |G|^2 = b_simple N / (N - 1) (1/B - 1/N)+, b_simple of the finite set (noise_scale.h),
///     for batches drawn without replacement: 0 from B = N on;
///   b_simple and b_hessian, both of the finite set, to be compared with B (noise_curvature.h);
///   first_order_share = (L(w) - L(w - s d)) / (s G'd), d = P^{-1} G, s = eta gain (the effective learning rate): 1 where the loss
///     is a line that far, 1/2 at the bottom of a parabola, below 0 where it rises;
///   critical_sharpness = 2 / eta_c, eta_c the smallest learning rate with L(w - eta_c d) > L(w) (arXiv 2601.16979;
///     core/math/critical_step.h): d'Hd / G'd on a quadratic, so at most lambda_1(P^{-1} H);
///   critical_over_limit = eta critical_sharpness / limit;
///   decrease_at_limit = gain limit G'd / lambda_1(P^{-1} H), in units of the loss: the decrease that the gradient promises for one
///     update at the rate of the limit, whatever the run's own rate; the same for any multiple of P, so methods can be compared by it;
/// The update is the one that the method would make without momentum and weight decay.
///
/// Cost: that of preconditioned_curvature, noise_scale and, with b_hessian, noise_curvature with one pair, two gradients and 6 to
/// 10 forward passes. What can go wrong: estimator per_example and b_hessian refuse networks whose layers they don't know.
/// Definitions: docs/probes.md#ledger.
std::unique_ptr<Probe> make_ledger(const LedgerOptions& options);

}  // namespace basin
