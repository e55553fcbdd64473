// Runs in a worker process of its own.
#include "sweep/measure_speed.h"

#include "core/clock.h"
#include "core/device.h"
#include "core/error.h"
#include "core/toml_file.h"
#include "data/load.h"
#include "data/network_inputs.h"
#include "data/resident.h"
#include "hessian/curvature_operator.h"
#include "hessian/objective.h"
#include "runs/checkpoints.h"
#include "runs/parts.h"
#include "runs/train.h"
#include "sweep/update_timing.h"
#include "trainers/evaluation.h"

namespace basin {
namespace {

// A hundred that take a tenth of a second are timed well enough: a forecast of small networks shouldn't take longer than their runs.
constexpr TimingLength kUpdates{0.4, 0.1};  // at one batch size
constexpr TimingLength kPasses{0.2, 0.05};
constexpr double kTooLong = 2.0;   // an update expected to take longer isn't measured
constexpr int64_t kImages = 1024;  // that are kept of the data

Split first_examples(const Split& split, int64_t count) {
  count = std::min(count, split.size());
  return {split.inputs.narrow(0, 0, count).clone(), split.labels.narrow(0, 0, count).clone(),
          split.source_index.narrow(0, 0, count).clone()};
}

Dataset readable_data(DataOptions& options) {
  try {
    return load_dataset(options);
  } catch (const DataError&) {
    options.set = "synthetic";
    options.path.clear();
    options.train_examples = options.test_examples = 0;
    return load_dataset(options);
  }
}

void time_batches(const RunOptions& options, const Dataset& data, at::Device device,
                  std::vector<int64_t> batches, CellSpeed& speed) {
  std::sort(batches.begin(), batches.end());
  for (const int64_t batch : batches) {
    const bool first = speed.batch.empty();
    if (!first && speed.update_seconds.back() * static_cast<double>(batch) / speed.batch.back() > kTooLong)
      break;
    speed.update_seconds.push_back(time_updates(options, data, device, batch, kUpdates).seconds);
    speed.batch.push_back(static_cast<double>(batch));
  }
}

double time_per_image(int64_t images, const std::function<void()>& pass) {
  pass();
  const Clock::time_point start = Clock::now();
  int64_t passes = 0;
  do {
    pass();
    ++passes;
  } while (!kPasses.is_enough(seconds_since(start), passes));
  return seconds_since(start) / static_cast<double>(passes * images);
}

void time_forward(const RunOptions& options, const Dataset& data, at::Device device, CellSpeed& speed) {
  const at::ScalarType dtype = scalar_type(options.train.dtype);
  const std::shared_ptr<Model> model = build_model(options, data, dtype, device);
  const Dataset there = on_device(data, device);  // as in training
  const Split some = first_examples(there.train, options.train.micro_batch);
  const EvaluationSetup setup{there, loss_kind(options.train.loss), options.train.micro_batch, dtype, device};
  speed.forward = time_per_image(some.size(), [&] { evaluate(*model, setup, some); });
}

void time_probes(const RunOptions& options, const Dataset& data, at::Device device, CellSpeed& speed) {
  if (options.probes.run.empty()) return;
  const int64_t count = std::min(data.train.size(), options.probes.micro_batch);
  Objective objective = probed_objective(options, data, device, count);
  CurvatureOperator hessian(objective, Curvature::hessian);
  const at::Tensor direction = at::ones({hessian.size()}, at::TensorOptions(hessian.dtype()).device(device));
  const auto seconds_of = [&](const std::function<void()>& pass) {
    return time_per_image(count, [&] {
      pass();
      wait_for(device);
    });
  };
  speed.probe_gradient = seconds_of([&] { objective.gradient(); });
  speed.probe_hvp = seconds_of([&] { hessian.apply(direction); });
}

// What every run pays besides its updates: reading the data, building the network, checkpoints, the record.
// Returns the size of its last checkpoint.
double run_once(RunOptions options, const DataOptions& data, int64_t batch, const std::string& folder) {
  options = updates_only(options, batch);
  options.data = data;
  options.data.train_examples = options.data.test_examples = 64;
  options.train.updates = 1;
  train_run(options, folder);
  return static_cast<double>(std::filesystem::file_size(checkpoint_path(folder, "end")));
}

}  // namespace

CellSpeed measure_speed(const RunOptions& cell, const std::vector<int64_t>& batches,
                        const std::string& scratch) {
  const RunOptions options = by_itself(cell);
  const at::Device device = apply_runtime(options.runtime);
  DataOptions data_options = options.data;
  Dataset data = readable_data(data_options);
  data.train = first_examples(data.train, kImages);
  CellSpeed speed;
  speed.checkpoint_bytes = run_once(options, data_options, batches.front(), scratch + "/run");
  const Clock::time_point start = Clock::now();
  time_batches(options, data, device, batches, speed);
  time_forward(options, data, device, speed);
  time_probes(options, data, device, speed);
  speed.measured_seconds = seconds_since(start);
  return speed;
}

std::string to_toml(const CellSpeed& s) {
  return fmt::format(
      "batch = {}\nupdate_seconds = {}\nforward = {}\nprobe_gradient = {}\nprobe_hvp = {}\nmeasured_seconds "
      "= {}\ncheckpoint_bytes = {}\n",
      to_toml(OptionValue(s.batch)), to_toml(OptionValue(s.update_seconds)), to_toml(s.forward),
      to_toml(s.probe_gradient), to_toml(s.probe_hvp), to_toml(s.measured_seconds),
      to_toml(s.checkpoint_bytes));
}

CellSpeed parse_speed(const std::string& toml, const std::string& file_name) {
  CellSpeed speed;
  OptionTable table;
  table.add("batch", speed.batch, greater_than(0), "");
  table.add("update_seconds", speed.update_seconds, greater_than(0), "");
  table.add("forward", speed.forward, at_least(0), "");
  table.add("probe_gradient", speed.probe_gradient, at_least(0), "");
  table.add("probe_hvp", speed.probe_hvp, at_least(0), "");
  table.add("measured_seconds", speed.measured_seconds, at_least(0), "");
  table.add("checkpoint_bytes", speed.checkpoint_bytes, at_least(0), "");
  set_all(table, parse_toml(toml, file_name).entries);
  if (speed.batch.empty() || speed.batch.size() != speed.update_seconds.size()) {
    throw ConfigError(file_name + ": needs as many update_seconds as batch sizes");
  }
  return speed;
}

}  // namespace basin
