#include "trainers/hooks/noise_gauge.h"

#include "core/error.h"
#include "trainers/hooks/gpt_neox_noise.h"
#include "trainers/hooks/noise_average.h"
#include "trainers/hooks/noise_look.h"
#include "trainers/hooks/registry.h"
#include "trainers/tables.h"

namespace basin {
namespace {

constexpr const char* kNoiseState = "noise_scale";  // in a checkpoint's progress
constexpr const char* kSum = "gradient_sum";        // a state of GPT-NeoX's
constexpr const char* kSquare = "(loss/weight)^2";

Column status_column() {
  return column("status", "1", "status", "0 ok, 1 not_resolved, 2 unavailable, 3 nonfinite");
}

std::vector<double> saved_state(const Checkpoint& checkpoint) {
  const auto found = checkpoint.progress.find(kNoiseState);
  const auto* numbers =
      found == checkpoint.progress.end() ? nullptr : std::get_if<std::vector<double>>(&found->second);
  if (!numbers) throw IoError(std::string("checkpoint: progress has no list \"") + kNoiseState + "\"");
  return *numbers;
}

class MicroBatchGauge final : public NoiseGauge {
 public:
  MicroBatchGauge(const NoiseGaugeOptions& options, const HookSetup& setup)
      : every_(options.every),
        micro_batch_(setup.plan.micro_batch),
        n_(setup.data.train.size()),
        gradient_(setup.gradient),
        average_(options.beta) {
    gradient_.make_room_for_norms(largest_batch(setup.train));
    const bool ghosts = setup.model.has_batch_statistics();
    attributes_ = {{"every", every_},
                   {"beta", options.beta},
                   {"compat", options.compat},
                   {"definition", std::string("noise-scale-online")},
                   {"micro_batch", micro_batch_},
                   {"bn_mode", std::string(ghosts ? "ghost_batch" : "none")},
                   {"ghost_batch", ghosts ? setup.plan.ghost_batch : int64_t{0}},
                   {"dropout", setup.model.has_dropout()},
                   {"augmentation", setup.data_options.augmentation}};
  }

  std::optional<Table> table() const override {
    Table table;
    table.name = "noise_scale";
    table.long_name = fmt::format("gradient noise scale from micro-batches, every {}. update", every_);
    table.attributes = attributes_;
    table.columns = {
        column("update", "1", "updates done", "number of this update, from 1"),
        column("b_simple", "examples", "gradient noise scale", "tr_sigma_mean / g2_mean"),
        column("b_simple_low", "examples", "its lower end", "95 % by Fieller's theorem, at least 0"),
        column("b_simple_high", "examples", "its upper end", "infinite where g2_mean is not resolved"),
        column("g2_mean", kSquare, "moving mean of g2", "weights beta^(looks ago)"),
        column("g2_mean_error", kSquare, "its standard error", "from the spread of looks"),
        column("tr_sigma_mean", kSquare, "moving mean of tr_sigma", "weights beta^(looks ago)"),
        column("tr_sigma_mean_error", kSquare, "its standard error", "from the spread of looks"),
        column("g2", kSquare, "squared gradient norm of the training set",
               "unbiased, of this update; may be negative"),
        column("tr_sigma", kSquare, "trace of the gradient covariance", "unbiased, of this update"),
        column("batch_size", "examples", "batch size", "of this update"),
        column("micro_batches", "1", "micro-batches", "of this update"),
        column("looks", "1", "effective looks", "1 / sum of squared weights"),
        status_column()};
    return table;
  }

  bool measures(int64_t update) const override { return update % every_ == 0; }

  void after_gradient(const OngoingUpdate& update) override {
    row_.clear();
    if (!measures(update.number)) return;
    const Batch& batch = update.groups.front();
    const MicroBatchNorms norms = gradient_.micro_batch_norms();
    const NoiseLook look = look_at_noise(batch, micro_batch_, norms, n_);
    const bool finite = std::isfinite(look.tr_sigma) && std::isfinite(look.g2);
    if (finite) average_.add(look.tr_sigma, look.g2);
    const NoiseMeans means = finite ? average_.means() : NoiseAverage(0).means();  // never those of before
    const NoiseStatus status = !look.available() ? NoiseStatus::unavailable
                               : !finite         ? NoiseStatus::nonfinite
                               : means.resolved  ? NoiseStatus::ok
                                                 : NoiseStatus::not_resolved;
    row_ = {static_cast<double>(update.number),
            means.b_simple.value,
            means.b_simple.low,
            means.b_simple.high,
            means.g2.value,
            means.g2.error,
            means.tr_sigma.value,
            means.tr_sigma.error,
            look.g2,
            look.tr_sigma,
            static_cast<double>(batch.size),
            static_cast<double>(norms.parts.size()),
            means.looks,
            static_cast<double>(status)};
  }

  void save(Checkpoint& checkpoint) const override { checkpoint.progress[kNoiseState] = average_.state(); }
  void restore(const Checkpoint& checkpoint) override { average_.load_state(saved_state(checkpoint)); }

 private:
  int64_t every_, micro_batch_, n_;
  BatchGradient& gradient_;
  std::vector<std::pair<std::string, OptionValue>> attributes_;
  NoiseAverage average_;
};

class GptNeoxGauge final : public NoiseGauge {
 public:
  GptNeoxGauge(const NoiseGaugeOptions& options, const HookSetup& setup)
      : options_(options),
        gradient_(setup.gradient),
        noise_(setup.model.parameter_table(), setup.train.batch_size, options.every, options.beta) {}

  std::optional<Table> table() const override {
    Table table;
    table.name = "noise_scale";
    table.long_name = "gradient noise scale as GPT-NeoX logs it";
    table.attributes = {{"every", options_.every},
                        {"beta", options_.beta},
                        {"compat", options_.compat},
                        {"definition", std::string("noise-scale-gpt-neox")}};
    table.columns = {
        column("update", "1", "updates done", "number of this update, from 1"),
        column("b_simple", "examples", "gradient noise scale", "scale / noise"),
        column("noise", kSquare, "GPT-NeoX's noise: |G|^2", "exponential average, as logged"),
        column("scale", kSquare, "GPT-NeoX's scale: tr Sigma", "exponential average, as logged"),
        column("small_square", kSquare, "squared norm of this update's gradient", "in float32"),
        column("big_square", kSquare, "squared norm of the window's mean gradient", "in float32"),
        status_column()};
    return table;
  }

  void after_gradient(const OngoingUpdate& update) override {
    row_.clear();
    const std::optional<GptNeoxNoise::Numbers> found = noise_.add(gradient_.gradients());
    if (!found) return;
    const NoiseStatus status = std::isfinite(found->b_simple) ? NoiseStatus::ok : NoiseStatus::nonfinite;
    row_ = {static_cast<double>(update.number),
            found->b_simple,
            found->noise,
            found->scale,
            found->small_square,
            found->big_square,
            static_cast<double>(status)};
  }

  void save(Checkpoint& checkpoint) const override {
    checkpoint.progress[kNoiseState] = noise_.state();
    checkpoint.add_state(kSum, noise_.sum());
  }
  void restore(const Checkpoint& checkpoint) override {
    noise_.load_state(saved_state(checkpoint), checkpoint.state(kSum));
  }

 private:
  NoiseGaugeOptions options_;
  const BatchGradient& gradient_;
  GptNeoxNoise noise_;
};

}  // namespace

void bind_options(OptionTable& table, NoiseGaugeOptions& o) {
  table.add(
      "noise_scale_every", o.every, at_least(0),
      "updates between estimates of the gradient noise scale, each from one update's micro-batches; 0: none");
  table.add("noise_scale_beta", o.beta, half_open(0, 1),
            "decay of the noise scale's moving averages, per estimate");
  table.add("noise_scale_compat", o.compat, one_of({"none", "gpt-neox"}),
            "gpt-neox: noise scale as that tool computes it, from windows of noise_scale_every updates (its "
            "default: 10)");
}

void NoiseGauge::check(const Options& options, const HookCheck& run) {
  const bool neox = options.compat == "gpt-neox";
  if (neox && options.every < 2) {
    throw ConfigError(fmt::format(
        "noise_scale_compat = \"gpt-neox\" needs noise_scale_every >= 2, not {}: the updates of a "
        "window (its default is 10)",
        options.every));
  }
  if (neox && !run.train.batch_milestones.empty())
    throw ConfigError("noise_scale_compat = \"gpt-neox\" and batch_milestones exclude each other");
  if (options.every > 0 && run.plan.random_weights)
    throw ConfigError(
        "noise_scale_every and noise.batch exclude each other: the gauge would measure the added noise");
  if (options.every > 0 && run.plan.passes > 1)
    throw ConfigError("noise_scale_every and perturbation.kind exclude each other");
  if (options.every > 0 && run.plan.stale)
    throw ConfigError("noise_scale_every and parallel.mode exclude each other");
  if (options.every > 0 && run.plan.shards)
    throw ConfigError("noise_scale_every and parallel.shards exclude each other");
  if (options.every > 0 && run.overlap > 0)
    throw ConfigError("noise_scale_every and an optimiser with overlap exclude each other");
}

std::unique_ptr<UpdateHook> NoiseGauge::make(const Options& options, const HookSetup& setup) {
  if (options.every == 0) return nullptr;
  if (options.compat == "gpt-neox") return std::make_unique<GptNeoxGauge>(options, setup);
  return std::make_unique<MicroBatchGauge>(options, setup);
}

HookEntry noise_scale_hook() {
  return hook_entry<NoiseGauge>({
      .name = "noise_scale",
      .help = "The gradient noise scale, estimated during training.",
      .on = {"noise_scale_every=2"},
  });
}

}  // namespace basin
