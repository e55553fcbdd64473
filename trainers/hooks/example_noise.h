// defines: ExampleNoise, the noise of a smaller batch in the gradient of a larger one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainers/hooks/noise_control.h"
#include "trainers/hooks/noise_weights.h"
#include "trainers/update_hook.h"

namespace basin {

struct ExampleNoiseOptions {
  int64_t batch = 0;                      // b; 0: no noise
  std::string distribution = "gaussian";  // gaussian | rademacher: of xi
  std::string match = "gradient";         // gradient | step | temperature: what is that of a batch of b
  double reference_rate = 0;              // peak rate of the run with b, for step and temperature
  double reference_momentum = 0;          // its momentum, for temperature
  std::string control = "none";           // none | isotropic | coordinate_signs | layers_exchanged
  std::string preconditioner = "noisy";   // noisy | clean: what normalises the step

  /// Whether the noise vector is computed by itself.
  bool apart() const { return control != "none" || preconditioner == "clean"; }
};
void bind_options(OptionTable& table, ExampleNoiseOptions& options);

/// The b' of the noise that is matched, N training examples, L this run (rate: its peak) and S the run with b:
///   gradient     b' = b
///   step         1/b' = 1/N + (rate_S/rate_L)^2 (1/b - 1/N):  rate^2 C is the same
///   temperature  1/b' = 1/N + rate_S gain_S / (rate_L gain_L) (1/b - 1/N):  rate C/(1 - momentum) is the same
/// gain_L = Optimizer::gain(), gain_S = 1/(1 - reference_momentum). Schedules of the same shape keep it so along the run.
double matched_batch(const ExampleNoiseOptions& options, double n, double peak_rate, double gain);

/// g = sum_x a_x g_x with a_x = k_x/B + s (xi_x - mean xi)/m of trainers/hooks/noise_weights.h, in the one backward pass: given the
/// batch, the covariance of the mean gradient of b' of its examples, drawn without replacement. The m distinct examples of the batch
/// have one xi each, also where rows of one example are computed apart (dropout: each has a_x/k_x). With batch statistics, which couple
/// examples, ghost batches have one each: their mean gradients in place of g_x, J = B/ghost_batch in place of m, b'/ghost_batch in
/// place of b'. xi has mean 0 and variance 1, drawn from (seed, update, example or number of the ghost batch). The recorded loss
/// stays the plain mean.
///
/// With a control z = sum (a_x - k_x/B) g_x is computed by itself, a second pass over the batch, and replaced (NoiseControl): twice the
/// gradients. Otherwise no further pass: the cost is m random numbers.
///
/// Noise also shrinks steps: Adam's second moments, LARS's and LAMB's trust ratios and clipping factors see it as part of the
/// gradient. With preconditioner = "clean" they are of sum k_x/B g_x, the step's direction of g (Optimizer::set_clean_gradients,
/// OngoingUpdate::clean): z apart as for a control, so the same cost.
///
/// In the record: of each update b', s, m (or J) and n_eff; with z apart |z|, and what a control made of it, or the length of the
/// clean gradient; in the summary b' and the least n_eff of the run. What can go wrong: with batch statistics repeated examples lie in different ghost batches and count as
/// different, and with augmentation repeats are different images that get one xi: inexact for B > N, which the run's events say.
/// Under a perturbation both gradients have the same weights: SAM of the noisy gradient, and a displacement of clean length isn't
/// there. Where a weight's clean gradient is small against its noise, Adam's clean v makes its steps large, above all in the first
/// updates, when v has no history.
class ExampleNoise final : public UpdateHook, private BatchWeights, private GradientRule {
 public:
  using Options = ExampleNoiseOptions;
  static void bind(OptionTable& table, Options& options);
  /// Not with an optimiser that has overlap, nor perturbations of parts of the batch; b at most the batch size, and whole ghost batches.
  static void check(const Options& options, const HookCheck& run);
  static void plan(const Options& options, BatchPlan& plan);
  /// ConfigError where b' is above n_eff of a batch of the run, and where the optimiser can't be normalised by the clean gradient.
  static std::unique_ptr<UpdateHook> make(const Options& options, const HookSetup& setup);
  ExampleNoise(const Options& options, const HookSetup& setup);

  GradientRule* gradient_rule() override { return options_.apart() ? this : nullptr; }
  void before_gradient(OngoingUpdate& update) override;
  void before_step(const OngoingUpdate& update) override;
  void at_end(Summary& summary, bool diverged) override;
  std::vector<Column> train_columns() const override;
  void append_train_values(std::vector<double>& row) const override;

 private:
  enum class Part { all, mean, noise };
  std::vector<double> weights(const Batch& group, const BatchPlace& place) override;
  double group_gradient(const std::function<double()>& plain) override;
  NoiseUnits units_of(const Batch& group, std::vector<size_t>& unit_of_row, std::vector<int64_t>& keys) const;
  void refuse_small_batches(const HookSetup& setup);
  void refuse_optimizer(const HookSetup& setup) const;
  bool cleans() const { return options_.preconditioner == "clean"; }

  Options options_;
  const BatchGradient& gradient_;
  Optimizer& optimizer_;
  HookedRun& run_;
  NoiseDraws draws_;
  NoiseControl control_;
  int64_t ghost_ = 0;  // 0: xi by example
  int64_t first_ = 1;  // number of the run's first update
  double matched_ = 0, least_n_eff_ = 0;
  bool inexact_ = false;
  Part part_ = Part::all;
  int64_t update_ = 0;
  std::vector<at::Tensor> mean_;  // the clean gradient, where z is apart
  // What the last update had:
  double s_ = NAN, units_ = NAN, n_eff_ = NAN, length_ = NAN, controlled_length_ = NAN, clean_length_ = NAN;
};

}  // namespace basin
