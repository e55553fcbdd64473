// defines: TrainObserver, the interface through which recording, checkpoints and progress follow a Trainer.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "io/record.h"
#include "optim/optimizer.h"

namespace basin {

struct HookRow {
  std::string table;
  std::vector<double> row;
};

struct UpdateRecord {
  int64_t update = 0;      // 1-based: updates done
  int64_t examples = 0;    // nominal examples seen, duplicates counted
  int64_t gradients = 0;   // image gradients computed so far
  int64_t batch_size = 0;  // of this update
  double loss = 0;         // mean training loss of this batch, before the update (train mode)
  double learning_rate = 0;
  // NaN, and the last one null, where the update took no norms (kNormsAtEveryUpdate). Gradients are as they were before hooks changed them.
  double gradient_norm = NAN, update_norm = NAN, weight_norm = NAN, distance_from_start = NAN;
  const std::vector<ParameterStep>* parameters = nullptr;
  std::vector<double> hook_values;  // of the columns that hooks add to the table "train"
  std::vector<HookRow>
      hook_rows;       // of their own tables; none from a hook that has nothing to say about this update
  double seconds = 0;  // wall time of training so far
};

struct EvaluationRecord {
  int64_t update = 0, examples = 0, gradients = 0;
  // NaN: not evaluated.
  double train_loss = NAN, train_accuracy = NAN, validation_loss = NAN, validation_accuracy = NAN;
  double test_loss = NAN, test_accuracy = NAN;
  double seconds = 0;
};

class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void on_update(const UpdateRecord&) {}
  virtual void on_evaluation(const EvaluationRecord&) {}
  /// A milestone was reached: "start", "loss-1.5", "u000100", "end". Also "latest" for resuming.
  virtual void on_checkpoint(const std::string& /*label*/) {}
  /// Outcomes of single examples on the way, "test@loss-1.5". Those of the end are the result's.
  virtual void on_outcomes(const std::string& /*split*/, const ExampleOutcomes&) {}
  virtual void on_event(const std::string& /*level*/, const std::string& /*text*/) {}
};

}  // namespace basin
