#include "tests/trainers/test_run.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "data/load.h"
#include "data/network_inputs.h"
#include "models/registry.h"
#include "optim/registry.h"
#include "tests/support/settings.h"
#include "trainers/hooks/gradient_clipping.h"
#include "trainers/hooks/lookahead.h"
#include "trainers/hooks/perturbed_gradient.h"
#include "trainers/hooks/registry.h"
#include "trainers/hooks/weight_average.h"

namespace basin::testing {

RunSettings small_settings() {
  RunSettings s;
  s.train.hooks = registered_hooks();
  s.data.set = "synthetic";
  s.data.train_examples = 200;
  s.data.test_examples = 60;
  s.train.protocol = "A-updates";
  s.train.updates = 5;
  s.train.batch_size = 50;
  s.train.learning_rate = 0.05;
  s.train.dtype = "float64";
  s.train.checkpoint_seconds = 1e6;
  s.schedule.schedule = "constant";
  s.schedule.warmup = 0;
  return s;
}

RunSettings noisy_settings(const std::string& optimizer) {
  RunSettings s = small_settings();
  s.model = "keskar_c1";
  s.model_settings = {"width=2", "hidden=[8, 6]", "norm=batch", "dropout=0.5"};
  s.optimizer = optimizer;
  s.train.dtype = "float32";
  s.train.updates = 8;
  s.train.batch_size = 24;
  s.train.micro_batch = 12;
  s.train.ghost_batch = 12;
  s.train.evaluate_every = 48;
  s.train.learning_rate = 0.01;
  s.data.train_examples = 60;
  s.data.test_examples = 20;
  s.data.augmentation = "crop_flip";
  s.schedule.schedule = "cosine";
  s.train.layers_every = 5;
  if (has_overlap(optimizer)) {
    s.model_settings.back() = "dropout=0.0";
    s.train.ghost_batch = 6;  // a quarter of a batch, as the overlap
  }
  return s;
}

RunSettings with_hooks(RunSettings s) {
  s.train.hook<GradientClippingOptions>().limit = 0.5;
  s.train.hook<WeightAverageOptions>().decay = 0.9;
  if (has_overlap(s.optimizer)) return s;  // it excludes the others
  s.train.hook<PerturbationOptions>() = {.kind = "sam", .examples = 12};
  s.train.hook<LookaheadOptions>().every = 2;
  s.train.batch_milestones = {0.5};
  s.train.batch_factor = 2;
  return s;
}

void Listener::on_update(const UpdateRecord& record) {
  updates.push_back(record);
  updates.back().parameters = nullptr;
  for (const HookRow& hook : record.hook_rows) rows[hook.table].push_back(hook.row);
  steps.push_back(record.parameters ? *record.parameters : std::vector<ParameterStep>());
}

void Listener::on_checkpoint(const std::string& label) {
  Checkpoint checkpoint;
  trainer->save(checkpoint);
  for (auto& parameter : checkpoint.parameters) parameter.tensor = parameter.tensor.clone();
  for (auto& [name, tensor] : checkpoint.buffers) tensor = tensor.clone();
  for (auto& [name, tensor] : checkpoint.optimizer) tensor = tensor.clone();
  for (auto& [name, tensor] : checkpoint.generators) tensor = tensor.clone();
  checkpoints[label] = checkpoint;
}

TestRun::TestRun(const RunSettings& s) : settings(s), data(load_dataset(s.data)) {
  const auto& images = data.train.inputs;
  const auto dtype = s.train.dtype == "float64" ? at::kDouble : at::kFloat;
  const auto& model_entry = find_entry(model_registry(), s.model, "model");
  model = make_model(s.model, *options_with(model_entry, s.model_settings),
                     {images.size(1), images.size(2), images.size(3), data.classes()},
                     static_cast<uint64_t>(s.train.seed), dtype, s.device);
  const auto& entry = find_entry(optimizer_registry(), s.optimizer, "optimizer");
  optimizer = entry.make(model->parameter_table(), *options_with(entry, s.optimizer_settings));
  trainer = std::make_unique<Trainer>(TrainSetup{settings.train, settings.schedule, settings.data, data,
                                                 model, *optimizer, s.device, s.cuda_graphs, s.branch,
                                                 *s.ranks, s.workers, s.is_worker});
  listener.trainer = trainer.get();
  trainer->observe(listener);
}

TrainResult TestRun::run_until(int64_t updates) {
  trainer->set_stop_request([this, updates] { return trainer->updates_done() >= updates; });
  return trainer->run();
}

at::Tensor TestRun::weights() const {
  std::vector<at::Tensor> flat;
  for (const auto& p : model->parameter_table())
    flat.push_back(p.tensor.detach().to(at::kCPU, at::kDouble).reshape({-1}));
  return at::cat(flat);
}

std::vector<at::Tensor> plain_gradient(TestRun& run, int64_t start, int64_t count) {
  ExampleStream stream(static_cast<uint64_t>(run.settings.train.seed), run.data.train.size());
  return plain_gradient(run, stream.slice(start, count, false).examples);
}

std::vector<at::Tensor> plain_gradient(TestRun& run, const std::vector<int64_t>& examples) {
  const at::Tensor index = at::tensor(examples, at::kLong);
  const at::Tensor inputs = network_inputs(run.data, run.data.train, index, at::kDouble, at::kCPU);
  const at::Tensor labels = run.data.train.labels.index_select(0, index);
  const at::Tensor chosen = at::log_softmax(run.model->forward(inputs), 1).gather(1, labels.unsqueeze(1));
  std::vector<at::Tensor> weights;
  for (const ParameterInfo& p : run.model->parameter_table()) weights.push_back(p.tensor);
  return torch::autograd::grad({-chosen.mean()}, weights);
}

bool has_overlap(const std::string& optimizer) {
  const auto& entry = find_entry(optimizer_registry(), optimizer, "optimizer");
  return entry.traits(*entry.make_options()).overlap > 0;
}

double rate_of_first_move(RunSettings settings, double share) {
  settings.train.updates = 1;
  settings.train.learning_rate = 1e-3;
  TestRun run(settings);
  const at::Tensor start = run.weights();
  run.run();
  return 1e-3 * share / relative_difference(run.weights(), start);
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

double number(const TrainResult& result, const std::string& key) {
  for (const auto& [name, value] : result.summary) {
    if (name != key) continue;
    if (const auto* i = std::get_if<int64_t>(&value)) return static_cast<double>(*i);
    if (const auto* b = std::get_if<bool>(&value)) return *b ? 1 : 0;
    return std::get<double>(value);
  }
  ADD_FAILURE() << "no summary entry " << key;
  return NAN;
}

}  // namespace basin::testing
