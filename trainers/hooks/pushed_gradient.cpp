#include "trainers/hooks/pushed_gradient.h"

#include <ATen/ops/tensor.h>

#include "core/error.h"
#include "trainers/flat_weights.h"

namespace basin {
namespace {

constexpr const char* kPushes = "worker_pushes";
constexpr int64_t kPushNumbers = StaleRecord::kNumbers + 6;

}  // namespace

PushedGradient::PushedGradient(const StaleGradientOptions& options, const HookSetup& setup)
    : gradient_(setup.gradient),
      links_(*setup.workers),
      run_(setup.run),
      bound_(options.workers, options.bound),
      workers_(static_cast<size_t>(options.workers)) {
  for (const ParameterInfo& parameter : setup.model.parameter_table()) weights_.push_back(parameter.tensor);
}

void PushedGradient::before_gradient(OngoingUpdate& update) {
  if (first_start_ < 0) first_start_ = update.start, first_draw_ = update.draw;
  batch_size_ = update.batch_size;
  pushed_ = next_push(update);
  Worker& worker = workers_[static_cast<size_t>(pushed_.worker)];
  worker.busy = false;
  bound_.step_done(pushed_.worker);
  const double taken = now();
  worked_ += pushed_.seconds;
  waited_ += taken - *worker.since - pushed_.seconds;
  worker.since = taken;
  arrival_ = {pushed_.worker, worker.batch, version() - worker.version, bound_.lead(pushed_.worker), taken};
  update.start = first_start_ + worker.batch * batch_size_;
  update.draw = first_draw_ + worker.batch;
}

WorkerEvent PushedGradient::next_push(const OngoingUpdate& update) {
  if (!start_) start_ = Clock::now();
  while (true) {
    send_orders(update.batch_size);
    WorkerEvent event = links_.receive();
    if (event.lost.empty()) return event;
    bound_.remove(event.worker);
    if (bound_.left() == 0) throw RankLost("no worker is left: " + event.lost);
    run_.event("warning", fmt::format("{}: worker {} is missing from update {} on", event.lost, event.worker,
                                      update.number));
  }
}

void PushedGradient::send_orders(int64_t batch_size) {
  at::Tensor flat;
  for (size_t k = 0; k < workers_.size(); ++k) {
    Worker& worker = workers_[k];
    const auto number = static_cast<int64_t>(k);
    if (worker.busy || !bound_.may_begin(number)) continue;
    if (!flat.defined()) flat = flat_on_host(weights_);
    if (worker.since) waited_ += now() - *worker.since;
    worker = {true, version(), batches_++, now()};
    links_.send(number, {first_start_ + worker.batch * batch_size, first_draw_ + worker.batch}, flat);
  }
}

double PushedGradient::group_gradient(const std::function<double()>& /*plain*/) {
  take_from_flat(pushed_.gradient, gradient_.gradients());
  return pushed_.loss * static_cast<double>(batch_size_);
}

void PushedGradient::after_update(int64_t /*update*/) { record_.note(arrival_); }

void PushedGradient::at_end(Summary& summary, bool /*diverged*/) {
  const double step = worked_ / static_cast<double>(record_.updates());
  const double last = std::max(earlier_, arrival_.time);  // evaluations that follow are no worker's time
  record_.summarise(summary, waited_ / (waited_ + worked_), last / step);
}

void PushedGradient::save(Checkpoint& checkpoint) const {
  std::vector<double> numbers = record_.state();
  numbers.insert(numbers.end(), {static_cast<double>(first_start_), static_cast<double>(first_draw_),
                                 static_cast<double>(batches_), now(), waited_, worked_});
  checkpoint.add_state(kPushes, {{"numbers", at::tensor(numbers, at::kDouble)}});
}

void PushedGradient::restore(const Checkpoint& checkpoint) {
  const NamedTensors& state = checkpoint.state(kPushes);
  if (state.size() != 1 || state.front().second.numel() != kPushNumbers)
    throw IoError(fmt::format("checkpoint: \"{}\" has not {} numbers", kPushes, kPushNumbers));
  const double* const numbers = record_.load_state(state.front().second.const_data_ptr<double>());
  first_start_ = static_cast<int64_t>(numbers[0]), first_draw_ = static_cast<int64_t>(numbers[1]);
  batches_ = static_cast<int64_t>(numbers[2]);
  earlier_ = numbers[3], waited_ = numbers[4], worked_ = numbers[5];
}

}  // namespace basin
