// defines: TestRun, a Trainer on the synthetic set with all that it refers to; Listener, an observer that keeps everything.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "optim/optimizer.h"
#include "trainers/trainer.h"

namespace basin::testing {

struct RunSettings {
  TrainOptions train;
  ScheduleOptions schedule;
  DataOptions data;
  std::string model = "mlp", optimizer = "sgd";
  std::vector<std::string> model_settings = {"hidden=[6]"};
  std::vector<std::string> optimizer_settings;
  at::Device device = at::kCPU;
  bool cuda_graphs = true;
  std::optional<BranchStart> branch = {};
  const RankGroup* ranks = &RankGroup::alone();
  WorkerLinks* workers = nullptr;
  bool is_worker = false;
};

/// 200 training and 60 test examples, constant rate, float64, no warm-up: small enough for hundreds of updates per second.
RunSettings small_settings();

/// Dropout, batch statistics, augmentation, channels-last convolutions, a schedule: 8 updates in float32.
RunSettings noisy_settings(const std::string& optimizer);

/// And with what else a run keeps or records: clipping, an average, SAM, Lookahead, a batch that grows.
RunSettings with_hooks(RunSettings settings);

struct Listener : TrainObserver {
  void on_update(const UpdateRecord& record) override;
  void on_evaluation(const EvaluationRecord& record) override { evaluations.push_back(record); }
  void on_checkpoint(const std::string& label) override;
  void on_outcomes(const std::string& split, const ExampleOutcomes& found) override {
    outcomes[split] = found;
  }
  void on_event(const std::string&, const std::string& text) override { events.push_back(text); }

  Trainer* trainer = nullptr;
  std::vector<UpdateRecord> updates;  // their `parameters` point nowhere
  std::vector<std::vector<ParameterStep>> steps;
  std::map<std::string, std::vector<std::vector<double>>> rows;  // of hooks' tables, by name
  std::vector<EvaluationRecord> evaluations;
  std::vector<std::string> events;
  std::map<std::string, ExampleOutcomes> outcomes;  // of the way
  std::map<std::string, Checkpoint> checkpoints;    // deep copies
};

class TestRun {
 public:
  explicit TestRun(const RunSettings& settings);

  TrainResult run() { return trainer->run(); }
  /// Runs until `updates` are done, then asks to stop.
  TrainResult run_until(int64_t updates);
  at::Tensor weights() const;  // all parameters, flat float64

  RunSettings settings;
  Dataset data;
  std::shared_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Trainer> trainer;
  Listener listener;
};

/// The mean cross-entropy gradient at the run's weights of positions [start, start + count) of its stream, each example as
/// often as it comes up, in one pass by autograd alone; float64.
std::vector<at::Tensor> plain_gradient(TestRun& run, int64_t start, int64_t count);
/// The same of these examples.
std::vector<at::Tensor> plain_gradient(TestRun& run, const std::vector<int64_t>& examples);

/// Whether this method has overlap by default, which excludes dropout, batch milestones and some hooks.
bool has_overlap(const std::string& optimizer);
/// The rate at which the first update moves the weights by `share` of their norm: methods differ by powers of ten.
double rate_of_first_move(RunSettings settings, double share);

/// |a - b| / |b|.
double relative_difference(const at::Tensor& a, const at::Tensor& b);
double number(const TrainResult& result, const std::string& key);

}  // namespace basin::testing
