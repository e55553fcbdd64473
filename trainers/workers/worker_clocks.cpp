#include "trainers/workers/worker_clocks.h"

#include <ATen/ops/tensor.h>

#include <cmath>

#include "core/error.h"
#include "core/math/philox.h"
#include "core/seed.h"

namespace basin {
namespace {

constexpr const char* kStepState = "workers";
constexpr const char* kTimeState = "times";
constexpr int64_t kWorkerIntegers = 5, kWorkerTimes = 2;  // of a worker, in a checkpoint

const at::Tensor& entry(const NamedTensors& state, const std::string& name, int64_t numbers,
                        int64_t workers) {
  for (const auto& [key, tensor] : state)
    if (key == name && tensor.dim() == 1 && tensor.numel() == numbers) return tensor;
  throw IoError(
      fmt::format("checkpoint: the state of stale gradients has no \"{}\" of {} workers", name, workers));
}

}  // namespace

WorkerClocks::WorkerClocks(const Options& options)
    : options_(options),
      bound_(options.workers, options.bound),
      workers_(static_cast<size_t>(options.workers)) {
  for (int64_t k = 0; k < options_.workers; ++k) begin(k, 0);
}

double WorkerClocks::duration(int64_t worker, int64_t clock) const {
  const double factor = worker == 0 ? options_.straggler : 1;
  if (!options_.exponential) return factor;
  const auto low = [](uint64_t value) { return static_cast<uint32_t>(value); };
  const auto high = [](uint64_t value) { return static_cast<uint32_t>(value >> 32); };
  const uint64_t key = derive_seed(options_.seed, "worker-steps", static_cast<uint64_t>(worker));
  const auto count = static_cast<uint64_t>(clock);
  const auto words = philox({low(count), high(count), 0, 0}, {low(key), high(key)});
  // 53 bits, in (0, 1].
  const double uniform = (static_cast<double>((uint64_t{words[0]} << 21) ^ (words[1] >> 11)) + 1) * 0x1p-53;
  return -factor * std::log(uniform);
}

void WorkerClocks::begin(int64_t worker, int64_t version) {
  Worker& of = workers_[static_cast<size_t>(worker)];
  const int64_t clock = bound_.clock(worker);
  of.step = StaleStep{worker, clock, version, batches_++, now_ + duration(worker, clock)};
}

size_t WorkerClocks::next_worker() const {
  size_t first = workers_.size();
  for (size_t k = 0; k < workers_.size(); ++k) {
    if (!workers_[k].step) continue;
    if (first == workers_.size() || workers_[k].step->ends < workers_[first].step->ends) first = k;
  }
  return first;  // the slowest is never kept waiting
}

const StaleStep& WorkerClocks::next() const { return *workers_[next_worker()].step; }

void WorkerClocks::advance(int64_t version) {
  Worker& done = workers_[next_worker()];
  now_ = done.step->ends;
  bound_.step_done(done.step->worker);
  done.step.reset();
  done.waits_since = now_;
  for (size_t k = 0; k < workers_.size(); ++k) {
    Worker& worker = workers_[k];
    if (worker.step || !bound_.may_begin(static_cast<int64_t>(k))) continue;
    waited_ += now_ - worker.waits_since;
    begin(static_cast<int64_t>(k), version);
  }
}

int64_t WorkerClocks::lead() const {
  StaleBound then = bound_;
  then.step_done(next().worker);
  return then.lead(next().worker);
}

std::set<int64_t> WorkerClocks::versions() const {
  std::set<int64_t> all;
  for (const Worker& worker : workers_)
    if (worker.step) all.insert(worker.step->version);
  return all;
}

int64_t WorkerClocks::steps_from(int64_t version) const {
  return std::count_if(workers_.begin(), workers_.end(),
                       [&](const Worker& worker) { return worker.step && worker.step->version == version; });
}

double WorkerClocks::waited_share() const {
  double waited = waited_;
  for (const Worker& worker : workers_)
    if (!worker.step) waited += now_ - worker.waits_since;
  return now_ > 0 ? waited / (now_ * static_cast<double>(workers_.size())) : 0;
}

NamedTensors WorkerClocks::state() const {
  std::vector<int64_t> integers;
  std::vector<double> times;
  for (size_t k = 0; k < workers_.size(); ++k) {
    const Worker& worker = workers_[k];
    const StaleStep step = worker.step.value_or(StaleStep());
    const int64_t clock = bound_.clock(static_cast<int64_t>(k));
    integers.insert(integers.end(), {clock, worker.step ? 1 : 0, step.clock, step.version, step.batch});
    times.insert(times.end(), {step.ends, worker.waits_since});
  }
  integers.push_back(batches_);
  times.insert(times.end(), {now_, waited_});
  return {{kStepState, at::tensor(integers, at::kLong)}, {kTimeState, at::tensor(times, at::kDouble)}};
}

void WorkerClocks::load_state(const NamedTensors& state) {
  const auto n = static_cast<int64_t>(workers_.size());
  const at::Tensor& integers = entry(state, kStepState, kWorkerIntegers * n + 1, n);
  const at::Tensor& times = entry(state, kTimeState, kWorkerTimes * n + 2, n);
  const auto* whole = integers.const_data_ptr<int64_t>();
  const auto* real = times.const_data_ptr<double>();
  for (int64_t k = 0; k < n; ++k, whole += kWorkerIntegers, real += kWorkerTimes) {
    Worker& worker = workers_[static_cast<size_t>(k)];
    bound_.set_clock(k, whole[0]);
    worker.step.reset();
    if (whole[1] != 0) worker.step = StaleStep{k, whole[2], whole[3], whole[4], real[0]};
    worker.waits_since = real[1];
  }
  batches_ = *whole;
  now_ = real[0];
  waited_ = real[1];
}

}  // namespace basin
