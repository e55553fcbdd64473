#include "trainers/hooks/weight_average.h"

#include "core/error.h"
#include "trainers/hooks/registry.h"
#include "trainers/tables.h"

namespace basin {
namespace {

constexpr const char* kAverage = "average";  // state, checkpoint and prefix of scores

}  // namespace

void bind_options(OptionTable& table, WeightAverageOptions& options) {
  table
      .add("weight_average", options.decay, half_open(0, 1),
           "decay per update of an exponential average of the weights, evaluated at the end; 0: no average")
      .costs_if_on();
}

void WeightAverage::check(const Options& options, const HookCheck& run) {
  if (options.decay > 0 && run.plan.shards)
    throw ConfigError(
        "weight_average and parallel.shards exclude each other: it would be that of one chain after another");
}

HookCost WeightAverage::cost(const Options& options) {
  if (options.decay == 0) return {};
  return {.evaluations = 1, .test_passes = 0, .checkpoints = {kAverage}};
}

std::unique_ptr<UpdateHook> WeightAverage::make(const Options& options, const HookSetup& setup) {
  if (options.decay == 0) return nullptr;
  return std::make_unique<WeightAverage>(setup.model, options.decay, setup.run);
}

WeightAverage::WeightAverage(const Model& model, double decay, HookedRun& run)
    : model_(model), decay_(decay), run_(run), average_(model.parameter_table(), kAverage) {}

double WeightAverage::decay_of(double decay, int64_t t) {
  const double updates = static_cast<double>(t);
  return std::min(decay, (1 + updates) / (10 + updates));
}

void WeightAverage::after_update(int64_t t) { average_.approach(1 - decay_of(decay_, t)); }

void WeightAverage::after_end(Summary& summary, bool diverged) {
  EvaluationRecord scores;
  if (!diverged) {
    const AveragedModel averaged(average_.tensors(), model_);
    scores = run_.score_other_weights(kAverage);
  }
  summary.emplace_back("average_train_loss", scores.train_loss);
  summary.emplace_back("average_train_acc", scores.train_accuracy);
  summary.emplace_back("average_validation_loss", scores.validation_loss);
  summary.emplace_back("average_validation_acc", scores.validation_accuracy);
  summary.emplace_back("average_test_loss", scores.test_loss);
  summary.emplace_back("average_test_acc", scores.test_accuracy);
}

void WeightAverage::save(Checkpoint& checkpoint) const { checkpoint.add_state(kAverage, average_.state()); }
void WeightAverage::restore(const Checkpoint& checkpoint) { average_.load_state(checkpoint.state(kAverage)); }

AveragedModel::AveragedModel(const std::vector<at::Tensor>& average, const Model& model) {
  for (const ParameterInfo& parameter : model.parameter_table()) tensors_.push_back(parameter.tensor);
  for (const auto& [name, buffer] : model.buffer_table()) tensors_.push_back(buffer);
  const at::NoGradGuard no_grad;
  for (const at::Tensor& tensor : tensors_) kept_.push_back(tensor.detach().clone());
  for (size_t i = 0; i < average.size(); ++i) tensors_[i].copy_(average[i]);
}

AveragedModel::~AveragedModel() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].copy_(kept_[i]);
}

HookEntry weight_average_hook() {
  return hook_entry<WeightAverage>({
      .name = "weight_average",
      .help = "An average of the weights, evaluated at the end.",
      .on = {"weight_average=0.9"},
      .summary =
          {
              column("average_train_loss", "nat", "training loss of the averaged weights", "average-loss"),
              column("average_train_acc", "1", "training accuracy of the averaged weights",
                     "average-accuracy"),
              column("average_validation_loss", "nat", "validation loss of the averaged weights",
                     "average-loss"),
              column("average_validation_acc", "1", "validation accuracy of the averaged weights",
                     "average-accuracy"),
              column("average_test_loss", "nat", "test loss of the averaged weights", "average-loss"),
              column("average_test_acc", "1", "test accuracy of the averaged weights", "average-accuracy"),
          },
  });
}

}  // namespace basin
