// defines: ScheduleFree, gradients between a fast iterate and the average that is evaluated: schedule-free SGD and AdamW.
#pragma once

#include <string>
#include <vector>

#include "optim/exclusion.h"
#include "optim/optimizer.h"

namespace basin {

struct ScheduleFreeSgdOptions {
  double momentum = 0.9;
  double averaging_power = 0, rate_power = 2;
  double weight_decay = 0;
  Exclusions exclude_from_decay = default_exclusions();
  Factors lr_factors, decay_factors;
};
void bind_options(OptionTable& table, ScheduleFreeSgdOptions& options);

struct ScheduleFreeAdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double averaging_power = 0, rate_power = 2;
  double weight_decay = 0;
  Exclusions exclude_from_decay = default_exclusions();
  Factors lr_factors, decay_factors;
};
void bind_options(OptionTable& table, ScheduleFreeAdamWOptions& options);

/// Schedule-free SGD and AdamW (Defazio et al. 2024, arXiv 2405.15682, equations 1 to 3 and algorithm 1). x = z = w at the start:
///   y = (1 - beta) z + beta x;   d = g(y) + wd y, AdamW: g(y) / (sqrt(v^) + eps) + wd y, v^ the corrected second moment of g(y)
///   z <- z - lr d;   x <- (1 - c) x + c z,   c = u / (sum of all u),  u = t^averaging_power lr_max^rate_power,
/// lr_max the largest rate so far, so that warm-up weighs less (the paper has 0 and 2). beta is `momentum` or `beta1`.
///
/// The run's weights are x: evaluated, stored, probed, averaged, and what weight_norm and update_norm are of. The state is z (and
/// v). go_to_gradient_point() puts y in their place, made of x and z each time, while x waits in a copy, so a run that was
/// stopped goes on with the same bits; the authors' code stores y and z, and x to rounding. Gradients, the batch losses and
/// gradient norms of a run are those at y. Who takes gradients without going there takes them at x, which is another method.
/// The formula is that of the authors' code: v is corrected where it is used (in algorithm 1 the rate, and so c, has the correction).
///
/// Rates are meant to be constant after a warm-up; under a falling schedule the average is one of steps that fall besides. Cost:
/// four passes; memory z, v, and x once more. Can go wrong: the last updates act on x by 1/t of them; c = 1 in the first update.
class ScheduleFree : public Optimizer {
 public:
  ScheduleFree(std::vector<ParameterInfo> parameters, const ScheduleFreeSgdOptions& options);
  ScheduleFree(std::vector<ParameterInfo> parameters, const ScheduleFreeAdamWOptions& options);
  void go_to_gradient_point() override;
  void leave_gradient_point() override;
  /// That of z's steps: 1, or AdamW's denominator; over the rate factor.
  std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& gradients) const override;
  /// 2 / (1 - beta) as c goes to 0: z alone moves then, by a gradient that has 1 - beta of it.
  double stability_limit() const override { return 2 / (1 - beta_); }

 private:
  void update(TensorLists& lists) override;
  at::Tensor gradient_point(size_t i) const;
  at::Tensor direction(size_t i, const at::Tensor& gradient);
  at::Tensor denominator(size_t i, int64_t updates) const;
  double weight_of_step();

  double beta_, averaging_power_, rate_power_;
  bool normalises_ = false;
  double beta2_ = 0, eps_ = 0;
  double weight_sum_ = 0, largest_rate_ = 0;
  std::vector<at::Tensor> kept_;  // x while y stands in its place; mostly empty
};

}  // namespace basin
