// defines: NoiseGauge, the gradient noise scale while a run trains; NoiseStatus.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainers/update_hook.h"

namespace basin {

struct NoiseGaugeOptions {
  int64_t every = 0;            // updates between looks; 0: none
  double beta = 0.99;           // weight of a look against the one after it, in its moving means
  std::string compat = "none";  // none | gpt-neox: of windows of `every` updates
};
void bind_options(OptionTable& table, NoiseGaugeOptions& options);

/// As numbers in the table, whose columns are all numbers.
enum class NoiseStatus { ok = 0, not_resolved = 1, unavailable = 2, nonfinite = 3 };

/// B = tr Sigma / |G|^2 from the gradients that training computes anyway, without a further pass: a row of the table
/// noise_scale at the updates that noise_scale_every names. Two of them:
///   none      tr Sigma and |G|^2 from the micro-batches of every k-th update (trainers/hooks/noise_look.h), and their
///             moving means (trainers/hooks/noise_average.h). Every number of a run stays as it would be without, to
///             the bit. Cost at such an update: two passes over the gradient for each micro-batch besides its norm;
///             memory two copies of the gradient.
///   gpt-neox  theirs, from successive updates (trainers/hooks/gpt_neox_noise.h).
/// The gradient is that of the loss trained on, at the weights before the update, before clipping. What it
/// means with ghost batches, dropout and augmentation: docs/probes.md#noise-scale-online.
class NoiseGauge : public UpdateHook {
 public:
  using Options = NoiseGaugeOptions;
  /// Not with a perturbation or added noise, whose gradients are others, nor an optimiser with overlap, where the gradient is
  /// computed in two parts; GPT-NeoX's needs windows of at least two updates of one batch size.
  static void check(const Options& options, const HookCheck& run);
  static std::unique_ptr<UpdateHook> make(const Options& options, const HookSetup& setup);

  const std::vector<double>& row() const override { return row_; }

 protected:
  std::vector<double> row_;
};

}  // namespace basin
