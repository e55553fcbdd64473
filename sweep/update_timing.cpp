#include "sweep/update_timing.h"

#include <fstream>

#include "core/clock.h"
#include "core/device.h"
#include "data/network_inputs.h"
#include "runs/parts.h"
#include "study/trust_ratios.h"
#include "trainers/graphed_step.h"
#include "trainers/trainer.h"
#include "trainers/workers/stale_options.h"

namespace basin {
namespace {

// More than fit into the time; few enough for hooks that look at every batch of a run beforehand (noise.batch).
constexpr int64_t kMostUpdates = 20'000;

/// "lo: RECEIVED packets ... SENT ...": the ninth number is what was sent.
double loopback_bytes() {
  std::ifstream file("/proc/net/dev");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name != "lo:") continue;
    double number = NAN;
    for (int i = 0; i < 9; ++i) words >> number;
    return number;
  }
  return NAN;
}

}  // namespace

RunOptions by_itself(RunOptions options) {
  options.train.branch = {};
  if (!trust_link()->text(options).empty())
    options.table().set(options.optimizer + ".trust", std::string("live"), "by_itself");
  if (auto& parallel = options.train.hook<StaleGradientOptions>(); parallel.real() || parallel.recorded()) {
    parallel.delays = "constant";
    parallel.order.clear();
  }
  return options;
}

RunOptions updates_only(RunOptions options, int64_t batch) {
  TrainOptions& train = options.train;
  train.protocol = "A-updates";
  train.updates = kMostUpdates;
  train.batch_size = batch;
  train.learning_rate = 1e-9;
  train.loss_levels.clear();
  train.batch_milestones.clear();
  train.regime_batch = 0;
  // What acts every so many updates costs next to nothing in one, and where there is one alone it can't.
  train.hooks.drop_if([](const HookOptions& hook) { return hook.updates_needed().count > 1; });
  train.evaluate_every = train.checkpoint_every = 0;
  train.checkpoint_seconds = 1e9;
  options.probes.at = {"end"};  // "every" would miss its cadence
  options.schedule = {};
  options.schedule.schedule = "constant";
  return options;
}

UpdateTiming time_updates(const RunOptions& cell, const Dataset& data, c10::Device device, int64_t batch,
                          TimingLength length, const RankGroup& ranks) {
  const RunOptions options = updates_only(cell, batch);
  const std::shared_ptr<Model> model = build_model(options, data, scalar_type(options.train.dtype), device);
  const std::unique_ptr<Optimizer> optimizer = build_optimizer(options, *model);
  Trainer trainer({options.train,
                   options.schedule,
                   options.data,
                   data,
                   model,
                   *optimizer,
                   device,
                   options.runtime.cuda_graph,
                   {},
                   ranks});
  TrainObserver nobody;  // so that the trainer does what it does for an observer
  trainer.observe(nobody);
  const int64_t first = device.is_cpu() ? 1 : GraphedStep::kWarmUps + 1;
  UpdateTiming timing;
  Clock::time_point start;
  RankTraffic traffic;
  double wire = 0;
  trainer.set_stop_request([&] {
    const int64_t done = trainer.updates_done() - first;
    if (done < 0) return false;
    if (done == 0) {
      start = Clock::now();
      traffic = ranks.traffic();
      wire = loopback_bytes();
      return false;
    }
    const double elapsed = seconds_since(start);
    timing = {elapsed / static_cast<double>(done), done, ranks.traffic().since(traffic),
              loopback_bytes() - wire};
    return done > 1 && length.is_enough(elapsed, done);
  });
  trainer.run();
  return timing;
}

Objective probed_objective(const RunOptions& cell, const Dataset& data, c10::Device device,
                           int64_t examples) {
  const at::ScalarType dtype = scalar_type(cell.probes.dtype);
  return {build_model(cell, data, dtype, device),
          loss_kind(cell.train.loss),
          network_inputs(data, data.train, at::arange(examples, at::kLong), dtype, device),
          data.train.labels.narrow(0, 0, examples),
          cell.probes.micro_batch,
          cell.probes.graph_memory * kMebibyte,
          cell.probes.fold_norm};
}

}  // namespace basin
