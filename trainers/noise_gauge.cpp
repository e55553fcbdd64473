#include "trainers/noise_gauge.h"

#include "core/error.h"
#include "trainers/gpt_neox_noise.h"
#include "trainers/noise_average.h"
#include "trainers/noise_look.h"
#include "trainers/tables.h"

namespace basin {
namespace {

constexpr const char* kState = "noise_scale";  // in a checkpoint's progress
constexpr const char* kSquare = "(loss/weight)^2";

Column status_column() {
  return column("status", "1", "status", "0 ok, 1 not_resolved, 2 unavailable, 3 nonfinite");
}

std::vector<double> saved_state(const Checkpoint& checkpoint) {
  const auto found = checkpoint.progress.find(kState);
  const auto* numbers =
      found == checkpoint.progress.end() ? nullptr : std::get_if<std::vector<double>>(&found->second);
  if (!numbers) throw IoError(std::string("checkpoint: progress has no list \"") + kState + "\"");
  return *numbers;
}

class MicroBatchGauge final : public NoiseGauge {
 public:
  MicroBatchGauge(const TrainOptions& options, const DataOptions& data, const BatchPlan& plan,
                  const Model& model, int64_t n)
      : every_(options.noise_scale_every),
        micro_batch_(plan.micro_batch),
        n_(n),
        average_(options.noise_scale_beta) {
    const bool ghosts = model.has_batch_statistics();
    attributes_ = {{"every", every_},
                   {"beta", options.noise_scale_beta},
                   {"compat", options.noise_scale_compat},
                   {"definition", std::string("noise-scale-online")},
                   {"micro_batch", micro_batch_},
                   {"bn_mode", std::string(ghosts ? "ghost_batch" : "none")},
                   {"ghost_batch", ghosts ? plan.ghost_batch : int64_t{0}},
                   {"dropout", model.has_dropout()},
                   {"augmentation", data.augmentation}};
  }

  Table table() const override {
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

  void add(int64_t update, const Batch& batch, const BatchGradient& gradient) override {
    row_.clear();
    if (!measures(update)) return;
    const MicroBatchNorms norms = gradient.micro_batch_norms();
    const NoiseLook look = look_at_noise(batch, micro_batch_, norms, n_);
    const bool finite = std::isfinite(look.tr_sigma) && std::isfinite(look.g2);
    if (finite) average_.add(look.tr_sigma, look.g2);
    const NoiseMeans means = finite ? average_.means() : NoiseAverage(0).means();  // never those of before
    const NoiseStatus status = !look.available() ? NoiseStatus::unavailable
                               : !finite         ? NoiseStatus::nonfinite
                               : means.resolved  ? NoiseStatus::ok
                                                 : NoiseStatus::not_resolved;
    row_ = {static_cast<double>(update),
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

  void save(Checkpoint& checkpoint) const override { checkpoint.progress[kState] = average_.state(); }
  void restore(const Checkpoint& checkpoint) override { average_.load_state(saved_state(checkpoint)); }

 private:
  int64_t every_, micro_batch_, n_;
  std::vector<std::pair<std::string, OptionValue>> attributes_;
  NoiseAverage average_;
};

class GptNeoxGauge final : public NoiseGauge {
 public:
  GptNeoxGauge(const TrainOptions& options, const Model& model)
      : options_(options),
        parameters_(model.parameter_table()),
        noise_(parameters_, options.batch_size, options.noise_scale_every, options.noise_scale_beta) {}

  Table table() const override {
    Table table;
    table.name = "noise_scale";
    table.long_name = "gradient noise scale as GPT-NeoX logs it";
    table.attributes = {{"every", options_.noise_scale_every},
                        {"beta", options_.noise_scale_beta},
                        {"compat", options_.noise_scale_compat},
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

  bool measures(int64_t /*update*/) const override { return false; }

  void add(int64_t update, const Batch& /*batch*/, const BatchGradient& /*gradient*/) override {
    row_.clear();
    std::vector<at::Tensor> gradients;
    for (const ParameterInfo& parameter : parameters_) gradients.push_back(parameter.tensor.grad());
    const std::optional<GptNeoxNoise::Numbers> found = noise_.add(gradients);
    if (!found) return;
    const NoiseStatus status = std::isfinite(found->b_simple) ? NoiseStatus::ok : NoiseStatus::nonfinite;
    row_ = {static_cast<double>(update),
            found->b_simple,
            found->noise,
            found->scale,
            found->small_square,
            found->big_square,
            static_cast<double>(status)};
  }

  void save(Checkpoint& checkpoint) const override {
    checkpoint.progress[kState] = noise_.state();
    checkpoint.gradient_sum = noise_.sum();
  }
  void restore(const Checkpoint& checkpoint) override {
    noise_.load_state(saved_state(checkpoint), checkpoint.gradient_sum);
  }

 private:
  TrainOptions options_;
  std::vector<ParameterInfo> parameters_;
  GptNeoxNoise noise_;
};

}  // namespace

std::unique_ptr<NoiseGauge> make_noise_gauge(const TrainOptions& options, const DataOptions& data,
                                             const BatchPlan& plan, const Model& model, int64_t n) {
  if (options.noise_scale_every == 0) return nullptr;
  if (options.noise_scale_compat == "gpt-neox") return std::make_unique<GptNeoxGauge>(options, model);
  return std::make_unique<MicroBatchGauge>(options, data, plan, model, n);
}

}  // namespace basin
