#include "trainers/hooks/registry.h"

#include "trainers/hooks/batch_overlap.h"
#include "trainers/hooks/gradient_clipping.h"
#include "trainers/hooks/lookahead.h"
#include "trainers/hooks/milestones.h"
#include "trainers/hooks/noise_gauge.h"
#include "trainers/hooks/perturbed_gradient.h"
#include "trainers/hooks/test_time_views.h"
#include "trainers/hooks/weight_average.h"

namespace basin {
namespace {

/// The erased options of hook H.
template <class H>
struct OptionsOfHook final : HookOptionsOf<typename H::Options> {
  std::unique_ptr<HookOptions> clone() const override { return std::make_unique<OptionsOfHook>(*this); }
  void bind(OptionTable& table) override { H::bind(table, this->value); }
  void check(const HookCheck& run) const override { H::check(this->value, run); }
  UpdatesNeeded updates_needed() const override { return H::updates_needed(this->value); }
  void plan(BatchPlan& plan) const override { H::plan(this->value, plan); }
  HookCost cost() const override { return H::cost(this->value); }
  std::unique_ptr<UpdateHook> make(const HookSetup& setup) const override {
    return H::make(this->value, setup);
  }
};

template <class H>
std::unique_ptr<HookOptions> options_of() {
  return std::make_unique<OptionsOfHook<H>>();
}

}  // namespace

const std::vector<HookEntry>& hook_registry() {
  static const std::vector<HookEntry> table{
      {"batch_overlap",
       "The last batch's last examples again, for methods with overlap.",
       {"optimizer=lbfgs"},
       options_of<BatchOverlap>},
      {"milestones",
       "Checkpoints at a cadence and at loss levels.",
       {"checkpoint_every=5", "loss_levels=[2.2]"},
       options_of<Milestones>},
      {"gradient_clipping",
       "A bound on the norm of the gradient.",
       {"clip_gradient=0.2"},
       options_of<GradientClipping>},
      {"lookahead",
       "Slow weights that the run's weights go back to.",
       {"lookahead_every=4"},
       options_of<Lookahead>},
      {"noise_scale",
       "The gradient noise scale while a run trains.",
       {"noise_scale_every=2"},
       options_of<NoiseGauge>},
      {"weight_average",
       "An average of the weights, evaluated at the end.",
       {"weight_average=0.9"},
       options_of<WeightAverage>},
      {"test_time_views",
       "The test score over several views of each image.",
       {"test_time_augmentation=flip"},
       options_of<TestTimeViews>},
      {"perturbation",
       "A gradient at displaced weights: SAM, ASAM, gradient penalty.",
       {"perturbation.kind=sam"},
       options_of<PerturbedGradient>},
  };
  return table;
}

HookList registered_hooks() {
  HookList hooks;
  for (const HookEntry& entry : hook_registry()) hooks.add(entry.make_options());
  return hooks;
}

}  // namespace basin
