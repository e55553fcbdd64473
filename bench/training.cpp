// Training speed of a network by the Trainer, for bench/training.py to set against PyTorch's.
//
//   bench_training MODEL BATCH THREADS SECONDS MICRO_BATCH [DEVICE]
//
// MODEL with its default options, on the embedded images or, where it takes tokens, the embedded text (an "image" is a window); on a GPU in
// bfloat16 autocast. Prints one line of JSON: batch, updates timed, images per second,
// parameters, loss of the last update, how gradients were computed.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/error.h"
#include "core/runtime.h"
#include "data/dataset.h"
#include "data/load.h"
#include "models/registry.h"
#include "optim/registry.h"
#include "runs/parts.h"
#include "trainers/trainer.h"

namespace {

using namespace basin;

constexpr int64_t kWarmUp = 3;  // updates that pay for memory and lazy initialisation

// What an observer of a training run costs is part of it.
struct LastLoss : TrainObserver {
  double value = 0;
  void on_update(const UpdateRecord& record) override { value = record.loss; }
};

// Endless updates at a constant rate; no evaluation, no checkpoint.
TrainOptions updates_only(int64_t batch, int64_t micro_batch, at::Device device) {
  TrainOptions train;
  train.protocol = "A-updates";
  train.updates = 1'000'000'000;
  train.batch_size = batch;
  train.micro_batch = micro_batch;
  train.learning_rate = 0.01;
  train.checkpoint_seconds = 1e9;
  if (device.is_cuda()) train.autocast = "bfloat16";
  return train;
}

int64_t parameter_count(const Model& model) {
  int64_t count = 0;
  for (const at::Tensor& parameter : model.parameters()) count += parameter.numel();
  return count;
}

int run(const std::string& network, int64_t batch, int64_t threads, double seconds, int64_t micro_batch,
        const std::string& where) {
  RuntimeOptions runtime;
  runtime.device = where;
  runtime.threads = threads;
  const at::Device device = apply_runtime(runtime);
  RunOptions options;
  options.model = network;
  if (find_entry(model_registry(), network, "model").inputs == ModelInputs::tokens) {
    options.data.set = "moby_dick";
    options.train.loss = "token_cross_entropy";
  }
  const Dataset data = load_dataset(options.data);
  const auto model = build_model(options, data, at::kFloat, device);
  const OptimizerEntry& sgd = find_entry(optimizer_registry(), "sgd", "optimizer");
  const auto optimizer = sgd.make(model->parameter_table(), *sgd.make_options());
  ScheduleOptions schedule;
  schedule.schedule = "constant";
  TrainOptions train = updates_only(batch, micro_batch, device);
  train.loss = options.train.loss;
  Trainer trainer({train, schedule, {}, data, model, *optimizer, device});
  LastLoss loss;
  trainer.observe(loss);

  Clock::time_point start;
  double elapsed = 0;
  trainer.set_stop_request([&] {
    if (trainer.updates_done() < kWarmUp) return false;
    if (trainer.updates_done() == kWarmUp) start = Clock::now();
    elapsed = seconds_since(start);
    return elapsed > seconds;
  });
  trainer.run();
  const int64_t updates = trainer.updates_done() - kWarmUp;
  const nlohmann::ordered_json row = {{"batch", batch},
                                      {"updates", updates},
                                      {"images_per_second", static_cast<double>(updates * batch) / elapsed},
                                      {"parameters", parameter_count(*model)},
                                      {"loss", loss.value},
                                      {"execution", trainer.execution()}};
  fmt::print("{}\n", row.dump());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  basin::tune_allocator();
  if (argc < 6) {
    fmt::print(stderr, "usage: bench_training MODEL BATCH THREADS SECONDS MICRO_BATCH [DEVICE]\n");
    return 2;
  }
  try {
    return run(argv[1], std::stoll(argv[2]), std::stoll(argv[3]), std::stod(argv[4]), std::stoll(argv[5]),
               argc > 6 ? argv[6] : "cpu");
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_training: {}\n", error.what());
    return 1;
  }
}
