#include "trainers/hooks/ledger.h"

#include <ATen/ATen.h>

#include "core/error.h"
#include "trainers/hooks/noise_look.h"
#include "trainers/hooks/registry.h"
#include "trainers/tables.h"

namespace basin {
namespace {

constexpr const char* kLastChange = "ledger_change";  // a state
constexpr const char* kGradientUnits = "(loss/weight)^2";

std::vector<at::Tensor> weights_of(const Model& model) {
  std::vector<at::Tensor> weights;
  for (const ParameterInfo& parameter : model.parameter_table()) weights.push_back(parameter.tensor.detach());
  return weights;
}

std::vector<at::Tensor> copied(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

double inner(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += (a[i].to(at::kDouble) * b[i].to(at::kDouble)).sum().item<double>();
  return sum;
}

double sum_of_squared_shares(const Batch& batch) {
  double sum = 0;
  for (const int64_t count : batch.counts) sum += static_cast<double>(count) * static_cast<double>(count);
  return sum / (static_cast<double>(batch.size) * static_cast<double>(batch.size));
}

}  // namespace

void bind_options(OptionTable& table, LedgerGaugeOptions& options) {
  table
      .add("ledger_every", options.every, at_least(0),
           "updates between rows of the ledger (what limits a run now), 6 to 14 forward passes over the "
           "batch each; 0: none")
      .quiet_default();
  table
      .add("ledger_tolerance", options.tolerance, between(1e-6, 1),
           "relative width of the bracket of the critical learning rate in the ledger")
      .quiet_default();
}

void LedgerGauge::check(const Options& options, const HookCheck& run) {
  if (options.every > 0 && run.plan.passes > 1)
    throw ConfigError(
        "ledger_every excludes what computes a batch's gradient twice: perturbation.kind, noise.control, "
        "noise.preconditioner");
  if (options.every > 0 && run.gradients_elsewhere)
    throw ConfigError(
        "ledger_every excludes an optimiser whose gradients are of other weights than those it moves");
  if (options.every > 0 && run.plan.stale)
    throw ConfigError(
        "ledger_every and parallel.mode exclude each other: it looks along one update from its own gradient");
  if (options.every > 0 && run.plan.shards)
    throw ConfigError(
        "ledger_every and parallel.shards exclude each other: no update is of the run's weights");
}

std::unique_ptr<UpdateHook> LedgerGauge::make(const Options& options, const HookSetup& setup) {
  if (options.every == 0) return nullptr;
  return std::make_unique<LedgerGauge>(options, setup);
}

LedgerGauge::LedgerGauge(const Options& options, const HookSetup& setup)
    : every_(options.every),
      tolerance_(options.tolerance),
      plain_(!setup.plan.random_weights),
      takes_noise_(plain_ && setup.plan.overlap == 0),
      micro_batch_(setup.plan.micro_batch),
      examples_(setup.data.train.size()),
      model_(setup.model),
      optimizer_(setup.optimizer),
      gradient_(setup.gradient),
      progress_(setup.run.progress()) {
  if (takes_noise_) gradient_.make_room_for_norms(largest_batch(setup.train));
}

void LedgerGauge::after_gradient(const OngoingUpdate& update) {
  row_.clear();
  if (!is_due(update.number)) return;
  groups_ = update.groups;
  place_ = {update.draw, update.start};
  loss_ = update.loss;
  batch_gradient_ = copied(gradient_.gradients());
  noise_square_ = gradient_square_ = NAN;
  if (takes_noise_) look_at_noise_of(update);
}

void LedgerGauge::look_at_noise_of(const OngoingUpdate& update) {
  const Batch& batch = update.groups.front();
  const NoiseLook look = look_at_noise(batch, micro_batch_, gradient_.micro_batch_norms(), examples_);
  const auto n = static_cast<double>(examples_);
  if (!look.available() || n < 2) return;
  noise_square_ = look.tr_sigma * n / (n - 1) * (sum_of_squared_shares(batch) - 1 / n);
  gradient_square_ = look.g2;
}

void LedgerGauge::before_step(const OngoingUpdate& update) {
  if (is_due(update.number) || comes_before(update.number)) before_ = copied(weights_of(model_));
}

void LedgerGauge::after_update(int64_t update) {
  if (!is_due(update) && !comes_before(update)) return;
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> weights = weights_of(model_), after = copied(weights);
  change_.clear();
  for (size_t i = 0; i < after.size(); ++i) change_.push_back(after[i] - before_[i]);
  if (is_due(update)) {
    const double promised = plain_ ? -inner(batch_gradient_, change_) : NAN;
    const double decrease = loss_ - loss_at(1);
    CriticalStep step;
    LedgerStatus status = LedgerStatus::ok;
    if ((plain_ && !std::isfinite(promised)) || !std::isfinite(loss_)) {
      status = LedgerStatus::nonfinite;
    } else if (promised <= 0) {
      status = LedgerStatus::no_descent;
    } else if (promised < kRounding * std::abs(loss_)) {
      status = LedgerStatus::below_rounding;
    } else {
      step = critical_step([&](double factor) { return factor == 1 ? loss_ - decrease : loss_at(factor); },
                           loss_, tolerance_);
      if (step.why == CriticalStep::Why::no_descent) status = LedgerStatus::no_descent;
      if (step.why == CriticalStep::Why::never_rises) status = LedgerStatus::never_rises;
    }
    for (size_t i = 0; i < after.size(); ++i) weights[i].copy_(after[i]);
    const bool resolved = promised >= kRounding * std::abs(loss_);
    const double rate = optimizer_.learning_rate();
    const double lengths =
        last_change_.empty() ? NAN : std::sqrt(inner(change_, change_) * inner(last_change_, last_change_));
    row_ = {static_cast<double>(update),
            resolved ? decrease / promised : NAN,
            promised,
            decrease,
            loss_,
            last_change_.empty() ? NAN : inner(change_, last_change_) / lengths,
            2 / (rate * step.value),
            2 / (rate * step.high),
            2 / (rate * step.low),
            rate,
            gradient_square_ > 0 ? noise_square_ / gradient_square_ : NAN,
            noise_square_,
            gradient_square_,
            static_cast<double>(1 + std::max<int64_t>(0, step.evaluations - 1)),
            static_cast<double>(status)};
  }
  last_change_ = comes_before(update) ? std::move(change_) : std::vector<at::Tensor>();
  change_.clear();
  before_.clear();
  batch_gradient_.clear();
}

/// L(w + factor d); moves the weights.
double LedgerGauge::loss_at(double factor) const {
  const std::vector<at::Tensor> weights = weights_of(model_);
  for (size_t i = 0; i < weights.size(); ++i) weights[i].copy_(before_[i] + change_[i] * factor);
  return gradient_.loss(groups_, place_);
}

void LedgerGauge::save(Checkpoint& checkpoint) const {
  if (last_change_.empty()) return;
  NamedTensors named;
  const std::vector<ParameterInfo>& parameters = model_.parameter_table();
  for (size_t i = 0; i < parameters.size(); ++i)
    named.emplace_back(parameters[i].name, last_change_[i].to(at::kCPU).contiguous());
  checkpoint.add_state(kLastChange, named);
}

void LedgerGauge::restore(const Checkpoint& checkpoint) {
  last_change_.clear();
  if (checkpoint.update == 0 || !comes_before(checkpoint.update)) return;
  if (checkpoint.states.count(kLastChange) == 0)
    return;  // the parent of a branch that has a ledger of its own
  const NamedTensors& state = checkpoint.state(kLastChange);
  for (const ParameterInfo& parameter : model_.parameter_table()) {
    const auto found =
        std::find_if(state.begin(), state.end(), [&](const auto& s) { return s.first == parameter.name; });
    if (found == state.end() || found->second.sizes() != parameter.tensor.sizes())
      throw IoError(fmt::format("checkpoint: state \"{}\" has no \"{}\" of this network's shape", kLastChange,
                                parameter.name));
    last_change_.push_back(at::empty_like(parameter.tensor.detach()).copy_(found->second));
  }
}

std::optional<Table> LedgerGauge::table() const {
  Table table;
  table.name = "ledger";
  table.long_name = fmt::format("what limits the run, of every {}. update's batch", every_);
  table.attributes = {{"every", every_}, {"tolerance", tolerance_}, {"micro_batch", micro_batch_}};
  table.columns = {
      column("update", "1", "updates done", "number of this update, from 1"),
      column("first_order_share", "1", "realised share of the first-order decrease", "ledger-while-training"),
      column("first_order", "loss", "decrease of the batch loss that its gradient promises",
             "ledger-while-training"),
      column("decrease", "loss", "decrease of the batch loss by the update", "ledger-while-training"),
      column("batch_loss", "loss", "loss of the batch before the update", "ledger-while-training"),
      column("cosine", "1", "cosine of this update and the one before", "ledger-while-training"),
      column("critical_sharpness", "1/learning_rate", "critical sharpness along the update",
             "critical-sharpness"),
      column("critical_sharpness_low", "1/learning_rate", "lower end of its bracket", "critical-sharpness"),
      column("critical_sharpness_high", "1/learning_rate", "upper end of its bracket", "critical-sharpness"),
      column("learning_rate", "1", "learning rate of the update", "ledger-while-training"),
      column("noise_over_gradient", "1", "squared noise over squared gradient", "ledger-while-training"),
      column("noise_square", kGradientUnits, "squared noise of the batch's gradient",
             "ledger-while-training"),
      column("gradient_square", kGradientUnits, "squared gradient over the training set",
             "ledger-while-training"),
      column("forward_passes", "1", "forward passes over the batch that the row took",
             "ledger-while-training"),
      column("status", "1", "status of the critical sharpness",
             "0 ok, 1 no_descent, 2 never_rises, 3 below_rounding, 4 nonfinite")};
  return table;
}

HookEntry ledger_hook() {
  return hook_entry<LedgerGauge>({
      .name = "ledger",
      .help = "What limits the run now: first-order share, critical sharpness, noise, at regular intervals.",
      .on = {"ledger_every=2"},
  });
}

}  // namespace basin
