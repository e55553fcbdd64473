#include "trainers/hooks/stale_gradient.h"

#include <ATen/ops/tensor.h>

#include "core/error.h"
#include "trainers/hooks/pushed_gradient.h"
#include "trainers/hooks/registry.h"
#include "trainers/workers/recorded_order.h"
#include "trainers/workers/whole_batches.h"
#include "trainers/workers/worker_clocks.h"

namespace basin {
namespace {

constexpr const char* kClocks = "worker_clocks";
constexpr const char* kSeen = "worker_record";

std::unique_ptr<Arrivals> arrivals_of(const StaleGradientOptions& options, const HookSetup& setup) {
  if (options.recorded()) {
    if (!setup.order) throw std::logic_error("nobody has read the order of arrivals");
    return std::make_unique<RecordedOrder>(*setup.order, setup.updates, options.workers);
  }
  return std::make_unique<WorkerClocks>(
      WorkerClocks::Options{.workers = options.workers,
                            .bound = options.bound,
                            .exponential = options.delays == "exponential",
                            .straggler = options.straggler,
                            .seed = static_cast<uint64_t>(setup.train.seed)});
}

std::string weights_of(int64_t version) { return fmt::format("worker_weights_{}", version); }

at::Tensor numbers_in(const NamedTensors& state, int64_t count) {
  if (state.size() == 1 && state.front().second.numel() == count) return state.front().second;
  throw IoError(fmt::format("checkpoint: \"{}\" has not {} numbers", kSeen, count));
}

}  // namespace

void StaleGradient::bind(OptionTable& table, Options& options) {
  table.group("parallel", [&](OptionTable& t) { bind_options(t, options); });
}

void StaleGradient::check(const Options& options, const HookCheck& run) {
  if (!options.on()) return;
  if (options.recorded() == options.order.empty())
    throw ConfigError(
        fmt::format("parallel.delays = \"{}\" and parallel.order = \"{}\": \"recorded\" needs an "
                    "order, and others have none",
                    options.delays, options.order));
  if (options.straggler != 1 && options.real())
    throw ConfigError(fmt::format(
        "parallel.straggler = {:g} and parallel.delays = \"real\" exclude each other: nothing is simulated",
        options.straggler));
  const std::string by = fmt::format("parallel.mode = \"{}\"", options.mode);
  refuse_divided_batches(run, by);
  if (run.train.branch.exists() && run.train.branch.stream == "restarted")
    throw ConfigError(by + " and branch.stream = \"restarted\" exclude each other");
}

std::unique_ptr<UpdateHook> StaleGradient::make(const Options& options, const HookSetup& setup) {
  if (!options.on() || setup.is_worker) return nullptr;
  if (!options.real()) return std::make_unique<StaleGradient>(options, setup);
  if (setup.workers) return std::make_unique<PushedGradient>(options, setup);
  throw ConfigError(needs_ranks(options, 1));
}

StaleGradient::StaleGradient(const Options& options, const HookSetup& setup)
    : parameters_(setup.model.parameter_table()),
      arrivals_(arrivals_of(options, setup)),
      record_(arrivals_->time_units()) {}

void StaleGradient::before_gradient(OngoingUpdate& update) {
  if (first_start_ < 0) first_start_ = update.start, first_draw_ = update.draw;
  step_ = arrivals_->next();
  lead_ = arrivals_->lead();
  update.start = first_start_ + step_.batch * update.batch_size;
  update.draw = first_draw_ + step_.batch;
}

double StaleGradient::group_gradient(const std::function<double()>& plain) {
  if (is_taken_later(version())) kept_.insert_or_assign(version(), copy());
  if (step_.version == version()) return plain();
  const WeightCopy newest = copy();
  kept_.at(step_.version).put_back();
  const double loss_sum = plain();
  newest.put_back();
  return loss_sum;
}

// Another step than this update's began with these weights.
bool StaleGradient::is_taken_later(int64_t version) const {
  return arrivals_->steps_from(version) > (step_.version == version ? 1 : 0);
}

void StaleGradient::after_update(int64_t /*update*/) {
  record_.note({step_.worker, step_.batch, version() - step_.version, lead_, step_.ends});
  arrivals_->advance(version());
  std::erase_if(kept_, [&](const auto& of) { return arrivals_->steps_from(of.first) == 0; });
}

WeightCopy StaleGradient::copy() const { return {parameters_, "a worker's weights"}; }

void StaleGradient::at_end(Summary& summary, bool /*diverged*/) {
  record_.summarise(summary, arrivals_->waited_share(), arrivals_->time());
}

void StaleGradient::save(Checkpoint& checkpoint) const {
  checkpoint.add_state(kClocks, arrivals_->state());
  for (const auto& [version, weights] : kept_) checkpoint.add_state(weights_of(version), weights.state());
  std::vector<double> seen = record_.state();
  seen.insert(seen.end(), {static_cast<double>(first_start_), static_cast<double>(first_draw_)});
  checkpoint.add_state(kSeen, {{"numbers", at::tensor(seen, at::kDouble)}});
}

void StaleGradient::restore(const Checkpoint& checkpoint) {
  arrivals_->load_state(checkpoint.state(kClocks));
  const at::Tensor seen = numbers_in(checkpoint.state(kSeen), StaleRecord::kNumbers + 2);
  const double* const starts = record_.load_state(seen.const_data_ptr<double>());
  first_start_ = static_cast<int64_t>(starts[0]), first_draw_ = static_cast<int64_t>(starts[1]);
  kept_.clear();
  for (const int64_t version : arrivals_->versions()) {
    if (version == record_.updates()) continue;  // the weights as they stand; copied at the next update
    kept_.emplace(version, copy()).first->second.load_state(checkpoint.state(weights_of(version)));
  }
}

HookEntry stale_gradient_hook() {
  return hook_entry<StaleGradient>({
      .name = "stale_gradient",
      .help = "Gradients of older weights, as several workers push them to a parameter server.",
      .on = {"parallel.mode=ssp", "parallel.workers=3", "parallel.bound=2", "parallel.delays=exponential"},
      .summary = StaleRecord::summary_columns(),
  });
}

}  // namespace basin
