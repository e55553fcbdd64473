// defines: Optimizer, the base of ours: torch's class plus per-parameter norms, trust ratios and a nameable
// state.
#pragma once

#include <torch/optim/optimizer.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/parameter.h"

namespace basin {

/// What one update did to one parameter tensor: norms of the weights before the update, of the gradient as it
/// came, and of the change. Euclidean, summed in float64 in an order that doesn't depend on the number of
/// threads. trust_ratio is NaN where the method has none or the parameter is excluded.
struct ParameterStep {
  double weight_norm = NAN, gradient_norm = NAN, update_norm = NAN, trust_ratio = NAN;
};

/// Base of every optimiser. Gradients stand in .grad() and are never changed. Derives from
/// torch::optim::Optimizer so that C++ users can put it wherever torch's are taken; one learning rate for all
/// parameters, set per update by the schedule (or by torch's schedulers: it is the lr of the one parameter
/// group).
class Optimizer : public torch::optim::Optimizer {
 public:
  explicit Optimizer(std::vector<ParameterInfo> parameters);

  /// One update with the current learning rate. An undefined gradient counts as zero.
  torch::Tensor step(LossClosure closure = nullptr) final;
  void set_learning_rate(double value) { param_groups_.front().options().set_lr(value); }
  double learning_rate() const { return param_groups_.front().options().get_lr(); }

  const std::vector<ParameterInfo>& parameter_table() const { return parameters_; }
  /// One entry a parameter, of the last step.
  const std::vector<ParameterStep>& last_step() const { return last_step_; }
  /// For methods that scale layers by a trust ratio: what the reported one is; empty for the others.
  virtual std::string trust_ratio_definition() const { return {}; }
  bool has_trust_ratios() const { return !trust_ratio_definition().empty(); }

  /// P, the diagonal with which the method, momentum and weight decay aside, would step by
  /// -learning_rate() P^{-1} g: one positive number a weight, shaped as the parameters, all 1 for SGD. From
  /// the state as it stands and the gradient given, one tensor a parameter, where trust ratios depend on it.
  /// NaN where the state says nothing yet (Adam's moments before the first update).
  virtual std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& gradients) const;
  /// The largest learning_rate() lambda(P^{-1} H) at which steps on a quadratic with this P, held fixed, do
  /// not grow: 2 without momentum (Cohen et al., ICLR 2021, section 2 and appendix B; arXiv 2207.14484,
  /// section 3). NaN where the method has no such limit because P moves with the gradient.
  virtual double stability_limit() const = 0;

  /// Everything that the next step depends on but parameters and learning rate: "momentum/conv1.weight", ...,
  /// and "updates" as an int64 scalar. Copies. load_state checks names, shapes and types (IoError).
  NamedTensors state() const;
  void load_state(const NamedTensors& state);

 protected:
  /// Applies the method to parameter i, in place, with last_step_[i].weight_norm and gradient_norm already
  /// there; fills update_norm and trust_ratio. Runs without gradient recording.
  virtual void update_parameter(size_t i, const at::Tensor& gradient) = 0;
  /// Declares a zero-initialised state tensor for each parameter; for derived constructors.
  void add_slot(const std::string& name);
  at::Tensor& slot(size_t which, size_t i) { return slots_[which].second[i]; }
  const at::Tensor& slot(size_t which, size_t i) const { return slots_[which].second[i]; }
  /// w += factor d, also where the factor alone is beyond the type: a trust ratio grows without bound as |d|
  /// vanishes.
  static void add_scaled(const at::Tensor& w, const at::Tensor& d, double factor);
  /// Updates completed, so this one is number updates_done() + 1.
  int64_t updates_done() const { return updates_; }

  std::vector<ParameterInfo> parameters_;
  std::vector<ParameterStep> last_step_;

 private:
  int64_t updates_ = 0;
  std::vector<std::pair<std::string, std::vector<at::Tensor>>> slots_;
};

}  // namespace basin
