// defines: PerturbedGradient, training with a gradient that looks at a second point.
#pragma once

#include <memory>
#include <vector>

#include "optim/perturbation.h"
#include "trainers/update_hook.h"

namespace basin {

/// Each group's G of optim/perturbation.h in the place of its gradient, the groups being `examples` consecutive examples, or the
/// batch: a gradient at w and one at w + d, with the same crops, dropout masks and ghost batches, and w put back. The loss is that
/// at w. Cost: two gradients per example; some copies of the parameters.
class PerturbedGradient final : public UpdateHook, private GradientRule {
 public:
  using Options = PerturbationOptions;
  static void bind(OptionTable& table, Options& options);
  /// Not with an optimiser that has overlap; groups hold whole ghost batches.
  static void check(const Options& options, const HookCheck& run);
  static void plan(const Options& options, BatchPlan& plan);
  static std::unique_ptr<UpdateHook> make(const Options& options, const HookSetup& setup);
  PerturbedGradient(const Options& options, const Model& model, const BatchGradient& gradient);

  GradientRule* gradient_rule() override { return this; }

 private:
  double group_gradient(const std::function<double()>& plain) override;

  Perturbation perturbation_;
  const BatchGradient& gradient_;
};

}  // namespace basin
