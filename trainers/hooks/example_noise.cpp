#include "trainers/hooks/example_noise.h"

#include <unordered_map>

#include "core/error.h"
#include "core/math/tensor_norms.h"
#include "optim/perturbation.h"
#include "trainers/batch_schedule.h"
#include "trainers/hooks/registry.h"
#include "trainers/tables.h"

namespace basin {
namespace {

constexpr double kAbove = 1 + 1e-12;  // beyond the rounding of 1/b

double mean_of_shares(int64_t count, int64_t size) {
  return static_cast<double>(count) / static_cast<double>(size);
}

/// B^2/sum k^2 of the stream's examples [start, start + size): those of one epoch are all different.
double effective_size(ExampleStream& stream, int64_t start, int64_t size, int64_t n) {
  if (start / n == (start + size - 1) / n) return static_cast<double>(size);
  return NoiseUnits{stream.slice(start, size, true).counts}.effective();
}

}  // namespace

void bind_options(OptionTable& table, ExampleNoiseOptions& o) {
  table
      .add("batch", o.batch, at_least(0),
           "b: give the gradient the noise of a batch of b, by random weights of examples; 0: none")
      .quiet_default();
  table
      .add("distribution", o.distribution, one_of({"gaussian", "rademacher"}),
           "of the random numbers, one for each example (with batch norm: for each ghost batch)")
      .quiet_default();
  table
      .add(
          "match", o.match, one_of({"gradient", "step", "temperature"}),
          "what is that of a run with batches of b: the covariance C of the gradient, rate^2 C, or rate C/(1 "
          "- momentum)")
      .quiet_default();
  table
      .add("reference_rate", o.reference_rate, at_least(0),
           "step, temperature: the peak rate of the run with batches of b, after its scaling rule")
      .quiet_default();
  table
      .add("reference_momentum", o.reference_momentum, half_open(0, 1),
           "temperature: momentum of that run; 0 for moving averages, as in Adam")
      .quiet_default();
  table
      .add("control", o.control, one_of(NoiseControl::names()),
           "noise of the same length and another shape in its place; costs a second gradient per example")
      .costs()
      .quiet_default();
  table
      .add(
          "preconditioner", o.preconditioner, one_of({"noisy", "clean"}),
          "gradient that second moments, trust ratios and clipping factors are taken from: with the noise or "
          "without; clean costs a second gradient per example")
      .costs()
      .quiet_default();
}

void ExampleNoise::bind(OptionTable& table, Options& options) {
  table.group("noise", [&](OptionTable& t) { bind_options(t, options); });
}

void ExampleNoise::check(const Options& options, const HookCheck& run) {
  if (options.batch == 0) return;
  if (run.overlap > 0) throw ConfigError("noise.batch and an optimiser with overlap exclude each other");
  if (run.plan.group > 0) {
    throw ConfigError(fmt::format(
        "noise.batch needs perturbation.examples = 0, not {}: the noise is of the batch as a whole",
        run.plan.group));
  }
  if (options.batch > run.train.batch_size) {
    throw ConfigError(fmt::format("noise.batch = {} is above batch_size = {}: noise can only be added",
                                  options.batch, run.train.batch_size));
  }
  if (options.match != "gradient" && options.reference_rate == 0) {
    throw ConfigError(fmt::format(
        "noise.match = \"{}\" needs noise.reference_rate > 0, the peak rate of the run with batches of {}",
        options.match, options.batch));
  }
  if (options.match != "gradient" && run.train.batch_rate_power != 0) {
    throw ConfigError(fmt::format(
        "noise.match = \"{}\" and batch_rate_power exclude each other: the rate that is matched would grow "
        "with the batch",
        options.match));
  }
  if (options.preconditioner == "clean" && run.train.hooks.of<PerturbationOptions>().on()) {
    throw ConfigError(
        "noise.preconditioner = \"clean\" and perturbation.kind exclude each other: the displacement has the "
        "length of the noisy gradient");
  }
  if (!run.has_batch_statistics) return;
  const int64_t ghost = ghost_batch_of(run.train);
  for (const auto& [key, size] :
       {std::pair{"noise.batch", options.batch}, {"batch_size", run.train.batch_size}}) {
    if (size % ghost == 0) continue;
    throw ConfigError(fmt::format(
        "{} = {} must be a multiple of ghost_batch ({}) with noise and batch statistics", key, size, ghost));
  }
}

void ExampleNoise::plan(const Options& options, BatchPlan& plan) {
  if (options.batch == 0) return;
  plan.random_weights = true;
  if (options.apart()) plan.passes *= 2;
}

double matched_batch(const ExampleNoiseOptions& o, double n, double peak_rate, double gain) {
  const double b = static_cast<double>(o.batch);
  if (o.match == "gradient") return b;
  const double of_rates = o.reference_rate / peak_rate;
  const double factor =
      o.match == "step" ? of_rates * of_rates : of_rates / ((1 - o.reference_momentum) * gain);
  return 1 / (1 / n + factor * (1 / b - 1 / n));
}

std::unique_ptr<UpdateHook> ExampleNoise::make(const Options& options, const HookSetup& setup) {
  if (options.batch == 0) return nullptr;
  return std::make_unique<ExampleNoise>(options, setup);
}

ExampleNoise::ExampleNoise(const Options& options, const HookSetup& setup)
    : options_(options),
      gradient_(setup.gradient),
      optimizer_(setup.optimizer),
      run_(setup.run),
      draws_(static_cast<uint64_t>(setup.train.seed), "example-noise", options.distribution == "rademacher"),
      control_(options.control, setup.model.parameter_table(), static_cast<uint64_t>(setup.train.seed)),
      ghost_(setup.model.has_batch_statistics() ? setup.plan.ghost_batch : 0),
      first_(setup.first_update + 1) {
  const int64_t n = setup.data.train.size();
  matched_ = matched_batch(options, static_cast<double>(n), setup.peak_rate, setup.optimizer.gain());
  const bool repeats_differ = ghost_ > 0 || setup.data_options.augmentation != "none";
  inexact_ = repeats_differ && largest_batch(setup.train) > n;
  refuse_small_batches(setup);
  refuse_optimizer(setup);
  for (size_t i = 0; options.apart() && i < gradient_.gradients().size(); ++i)
    mean_.push_back(at::empty_like(gradient_.gradients()[i]));
  setup.gradient.weigh_examples(*this);
}

// All batches of the run are known beforehand, and so is how often examples come up in them.
void ExampleNoise::refuse_small_batches(const HookSetup& setup) {
  const int64_t n = setup.data.train.size();
  least_n_eff_ = INFINITY;
  int64_t start = setup.first_example;
  for (int64_t update = setup.first_update; update < setup.updates; ++update) {
    const int64_t size = setup.batch_size_of(update);
    const double n_eff = effective_size(setup.stream, start, size, n);
    if (matched_ > n_eff * kAbove) {
      const std::string source =
          options_.match == "gradient" ? "" : fmt::format(" (noise.match = \"{}\")", options_.match);
      throw ConfigError(fmt::format(
          "noise.batch = {}: a batch of {:.6g}{} is above {:.6g}, what the batch of update {} is worth: "
          "noise can only be added",
          options_.batch, matched_, source, n_eff, update + 1));
    }
    if ((ghost_ > 0 ? size / ghost_ : std::min(size, n)) == 1 && matched_ * kAbove < n_eff) {
      throw ConfigError(fmt::format(
          "noise.batch = {}: the batch of update {} is a single {}, of which no noise can be made",
          options_.batch, update + 1, ghost_ > 0 ? "ghost batch" : "example"));
    }
    least_n_eff_ = std::min(least_n_eff_, n_eff);
    start += size;
  }
}

void ExampleNoise::refuse_optimizer(const HookSetup& setup) const {
  if (!cleans()) return;
  if (!optimizer_.takes_clean_gradients())
    throw ConfigError(
        "noise.preconditioner = \"clean\": the optimiser takes what normalises its steps from their gradient "
        "alone");
  if (!setup.model.parameter_table().front().tensor.is_cpu())
    throw ConfigError("noise.preconditioner = \"clean\" runs on a CPU alone: set runtime.device = \"cpu\"");
}

void ExampleNoise::before_gradient(OngoingUpdate& update) {
  if (cleans()) update.clean = mean_;  // the same memory: filled with the gradient
  if (update.number != first_ || !inexact_) return;
  run_.event("warning", ghost_ > 0
                            ? "noise.batch: repeated examples count as different in other ghost batches; the "
                              "noise is inexact for batches of more than the training set"
                            : "noise.batch: repeated examples are augmented differently and share a random "
                              "number; the noise is inexact for batches of more than the training set");
}

// Which unit each row belongs to, and the number by which its xi is drawn.
NoiseUnits ExampleNoise::units_of(const Batch& group, std::vector<size_t>& unit_of_row,
                                  std::vector<int64_t>& keys) const {
  NoiseUnits units;
  std::unordered_map<int64_t, size_t> known;
  for (size_t row = 0; row < group.examples.size(); ++row) {
    const int64_t key = ghost_ > 0 ? static_cast<int64_t>(row) / ghost_ : group.examples[row];
    const auto [place, is_new] = known.try_emplace(key, keys.size());
    if (is_new) {
      keys.push_back(key);
      units.counts.push_back(0);
    }
    unit_of_row.push_back(place->second);
    units.counts[place->second] += group.counts[row];
  }
  return units;
}

std::vector<double> ExampleNoise::weights(const Batch& group, const BatchPlace& place) {
  std::vector<size_t> unit_of_row;
  std::vector<int64_t> keys;
  const NoiseUnits units = units_of(group, unit_of_row, keys);
  std::vector<double> xi;
  for (const int64_t key : keys) xi.push_back(draws_.at(place.update, key));
  // Ghost batches have equal sizes: counts that are all ghost_ are counts that are all 1, but for n_eff and b in their units.
  const NoiseUnits counted = ghost_ > 0 ? NoiseUnits{std::vector<int64_t>(keys.size(), 1)} : units;
  s_ = noise_strength(counted, ghost_ > 0 ? matched_ / static_cast<double>(ghost_) : matched_);
  units_ = static_cast<double>(keys.size());
  n_eff_ = counted.effective();
  update_ = place.update;
  const std::vector<double> all = noise_weights(counted, xi, s_);
  std::vector<double> rows;
  for (size_t row = 0; row < unit_of_row.size(); ++row) {
    const size_t unit = unit_of_row[row];
    const double share = mean_of_shares(group.counts[row], units.counts[unit]);  // of the unit, in this row
    const double mean = mean_of_shares(counted.counts[unit], counted.size());
    const double weight = part_ == Part::all ? all[unit] : part_ == Part::mean ? mean : all[unit] - mean;
    rows.push_back(share * weight);
  }
  return rows;
}

double ExampleNoise::group_gradient(const std::function<double()>& plain) {
  const at::NoGradGuard no_grad;
  const auto computed = [&](Part part) {
    part_ = part;
    const at::AutoGradMode with_grad(true);
    return plain();
  };
  const double loss_sum = computed(Part::mean);
  const std::vector<at::Tensor> z = gradient_.gradients();
  for (size_t i = 0; i < z.size(); ++i) mean_[i].copy_(z[i]);
  clean_length_ = std::sqrt(squared_norm(mean_));
  computed(Part::noise);
  length_ = std::sqrt(squared_norm(z));
  if (control_.on()) control_.replace(z, update_);
  controlled_length_ = std::sqrt(squared_norm(z));
  for (size_t i = 0; i < z.size(); ++i) at::Tensor(z[i]).add_(mean_[i]);
  return loss_sum;
}

void ExampleNoise::before_step(const OngoingUpdate& update) {
  if (!update.clean.empty()) optimizer_.set_clean_gradients(update.clean);
}

void ExampleNoise::at_end(Summary& summary, bool /*diverged*/) {
  summary.emplace_back("noise_matched_batch", matched_);
  summary.emplace_back("noise_least_n_eff", least_n_eff_);
}

std::vector<Column> ExampleNoise::train_columns() const {
  const std::string unit = ghost_ > 0 ? "ghost batches" : "examples";
  std::vector<Column> columns{
      column("noise_batch", "examples", "batch size whose noise the gradient has",
             fmt::format("b' of noise.match = \"{}\"", options_.match)),
      column("noise_s", "1", "strength of the added noise", "s of a_x = k_x/B + s (xi_x - mean xi)/m"),
      column("noise_units", unit, "numbers drawn: m", "distinct " + unit + " of this update's batch"),
      column("noise_n_eff", unit, "what the batch is worth", "B^2 / sum k^2 in " + unit)};
  if (!options_.apart()) return columns;
  columns.push_back(column("noise_length", "loss/weight", "length of the noise vector",
                           "Euclidean norm of z = sum (a_x - k_x/B) g_x"));
  if (control_.on())
    columns.push_back(column("noise_control_length", "loss/weight", "length of the noise that was added",
                             "Euclidean norm of what noise.control put in its place"));
  if (cleans())
    columns.push_back(column("clean_gradient_norm", "loss/weight", "length of the gradient without noise",
                             "Euclidean norm of sum k_x/B g_x, before clipping"));
  return columns;
}

void ExampleNoise::append_train_values(std::vector<double>& row) const {
  for (const double value : {matched_, s_, units_, n_eff_}) row.push_back(value);
  if (!options_.apart()) return;
  row.push_back(length_);
  if (control_.on()) row.push_back(controlled_length_);
  if (cleans()) row.push_back(clean_length_);
}

HookEntry example_noise_hook() {
  return hook_entry<ExampleNoise>({
      .name = "example_noise",
      .help = "The noise of a smaller batch in the gradient of a larger one.",
      .on = {"noise.batch=5"},
      .summary = {column("noise_matched_batch", "examples", "batch size whose noise the gradients have",
                         "noise-matched-batch"),
                  column("noise_least_n_eff", "examples", "least effective number of examples of a batch",
                         "noise-least-n-eff")},
  });
}

}  // namespace basin
