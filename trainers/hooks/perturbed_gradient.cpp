#include "trainers/hooks/perturbed_gradient.h"

#include "core/error.h"
#include "trainers/hooks/registry.h"

namespace basin {

void PerturbedGradient::bind(OptionTable& table, Options& options) {
  table.group("perturbation", [&](OptionTable& t) { bind_options(t, options); });
}

void PerturbedGradient::check(const Options& options, const HookCheck& run) {
  if (!options.on()) return;
  if (run.overlap > 0)
    throw ConfigError("perturbation.kind and an optimiser with overlap exclude each other");
  if (run.has_batch_statistics && options.examples > 0)
    check_cut("perturbation.examples", options.examples, run.train);
}

void PerturbedGradient::plan(const Options& options, BatchPlan& plan) {
  if (!options.on()) return;
  plan.group = options.examples;
  plan.passes *= 2;
}

std::unique_ptr<UpdateHook> PerturbedGradient::make(const Options& options, const HookSetup& setup) {
  if (!options.on()) return nullptr;
  return std::make_unique<PerturbedGradient>(options, setup.model, setup.gradient);
}

PerturbedGradient::PerturbedGradient(const Options& options, const Model& model,
                                     const BatchGradient& gradient)
    : perturbation_(model.parameter_table(), options), gradient_(gradient) {}

double PerturbedGradient::group_gradient(const std::function<double()>& plain) {
  const double loss_sum = plain();
  perturbation_.displace(gradient_.gradients());
  plain();
  perturbation_.restore(gradient_.gradients());
  return loss_sum;
}

HookEntry perturbation_hook() {
  return hook_entry<PerturbedGradient>({
      .name = "perturbation",
      .help = "A gradient at displaced weights: SAM, ASAM, gradient penalty.",
      .on = {"perturbation.kind=sam"},
  });
}

}  // namespace basin
