// defines: Optimizer, the base of ours: torch's class plus per-parameter norms, trust ratios and a nameable state.
#pragma once

#include <torch/optim/optimizer.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/parameter.h"

namespace basin {

/// What one update did to one parameter tensor. Norms are Euclidean, summed in float64. trust_ratio is NaN where the method
/// has none or the parameter is excluded.
struct ParameterStep {
  double weight_norm = NAN, gradient_norm = NAN, update_norm = NAN, trust_ratio = NAN;
};

/// Base of every optimiser. Gradients stand in .grad() and are never changed. Derives from torch::optim::Optimizer so that
/// C++ users can put it wherever torch's are taken; the learning rate lives here, set per update by the schedule.
class Optimizer : public torch::optim::Optimizer {
 public:
  explicit Optimizer(std::vector<ParameterInfo> parameters);

  /// One update with the current learning rate. An undefined gradient counts as zero.
  torch::Tensor step(LossClosure closure = nullptr) final;
  void set_learning_rate(double value) { learning_rate_ = value; }
  double learning_rate() const { return learning_rate_; }

  const std::vector<ParameterInfo>& parameter_table() const { return parameters_; }
  /// One entry a parameter, of the last step.
  const std::vector<ParameterStep>& last_step() const { return last_step_; }
  /// True for methods that scale layers by a trust ratio.
  virtual bool has_trust_ratios() const { return false; }

  /// Everything that the next step depends on but parameters and learning rate: "momentum/conv1.weight", ..., and
  /// "updates" as an int64 scalar. load_state checks names and shapes (IoError).
  NamedTensors state() const;
  void load_state(const NamedTensors& state);

 protected:
  /// Applies the method to parameter i: fills last_step_[i].trust_ratio and changes the tensor in place.
  virtual void update_parameter(size_t i, const at::Tensor& gradient) = 0;
  /// A zero-initialised state tensor like parameter i, registered under `name` for state().
  at::Tensor& slot(const std::string& name, size_t i);
  int64_t updates_done() const { return updates_; }

  std::vector<ParameterInfo> parameters_;
  std::vector<ParameterStep> last_step_;

 private:
  double learning_rate_ = 0;
  int64_t updates_ = 0;
  std::vector<std::pair<std::string, std::vector<at::Tensor>>> slots_;
};

}  // namespace basin
