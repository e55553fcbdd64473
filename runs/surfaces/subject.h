// defines: LandscapeOptions; LandscapeSubject, the networks and the examples of a loss landscape.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "landscape/point_evaluator.h"
#include "runs/surfaces/terrain.h"
#include "study/run_options.h"

namespace basin {

/// What every kind of landscape has, [landscape].
struct LandscapeOptions {
  int64_t subset = 1000;       // training examples by image hash; 0: all
  int64_t test_subset = 1000;  // test examples likewise
  int64_t micro_batch = 250;
  std::string dtype = "float32";
  std::string bn = "reset";  // reset | interpolate | frozen
  int64_t seed = 1;          // of all that is random
};
void bind_options(OptionTable& table, LandscapeOptions& options);

/// Checkpoints of one architecture, trained on one data set, and the network at the first of them.
class LandscapeSubject final : public Terrain {
 public:
  /// IoError where a file is no checkpoint, of another network than the first, or of other data than is read.
  LandscapeSubject(std::vector<std::string> files, const LandscapeOptions& options, at::Device device);

  size_t count() const override { return files_.size(); }
  const std::string& file(size_t i) const { return files_.at(i); }
  const Checkpoint& checkpoint(size_t i) const { return checkpoints_.at(i); }
  /// Weights and buffers as one vector (landscape/state_vector.h).
  at::Tensor state(size_t i) const override;
  /// RUN_ID/LABEL.
  std::string label(size_t i) const override;
  /// The first checkpoint's run.
  const RunOptions& run() const { return run_; }
  const LandscapeOptions& options() const { return options_; }

  Model& model() const { return *model_; }
  Objective& train() { return *train_; }
  Objective* test() { return test_.get(); }  // null without test examples
  PointEvaluator& evaluator() { return *evaluator_; }
  const StateVector& states() const { return evaluator_->states(); }
  const ParameterVector& parameters() const override { return states().parameters(); }
  at::Tensor origin() const override { return evaluator_->origin(); }
  std::string loss_units() const override { return train_->loss_units(); }
  /// The seed of a named stream: derive_seed(options.seed, stream, index).
  uint64_t seed(const std::string& stream, uint64_t index = 0) const override;

  /// What the numbers depend on besides a kind's own options: checkpoints' content, examples, arithmetic.
  h5::Attributes recipe() const override;
  /// Columns train_loss, train_loss_error, train_acc, and those of test where there is one.
  std::vector<SurfaceColumn> score_columns() const override;
  /// Fills them, in that order. nonfinite: of one set, NaN there.
  CellState fill(const PointScore& score, double* values) const;
  CellState measure(const at::Tensor& state, double* values) override {
    return fill(evaluator_->at(state), values);
  }
  double loss(const at::Tensor& state) override;

 private:
  std::vector<std::string> files_;
  LandscapeOptions options_;
  std::vector<Checkpoint> checkpoints_;
  RunOptions run_;
  std::string train_hash_, test_hash_;
  int64_t ghost_batch_ = 0;
  std::shared_ptr<Model> model_;
  std::unique_ptr<Objective> train_, test_;
  std::unique_ptr<PointEvaluator> evaluator_;
};

}  // namespace basin
