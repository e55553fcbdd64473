// defines: Optimizer, the base of ours: torch's class plus per-parameter norms, trust ratios and a nameable
// state.
#pragma once

#include <torch/optim/optimizer.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/math/kronecker.h"
#include "core/parameter.h"
#include "optim/kernels/multi_tensor.h"

namespace basin {

/// What one update did to one parameter tensor: norms of the weights before the update, of the gradient as it
/// came, and of the change. Euclidean, summed in an order that doesn't depend on the number of threads, on a CPU in
/// float64. trust_ratio is NaN where the method has none or the parameter is excluded; everything is where the update took no norms.
struct ParameterStep {
  double weight_norm = NAN, gradient_norm = NAN, update_norm = NAN, trust_ratio = NAN;
};

/// How processes that make the same steps divide a method's sums over weights: each sums over its part, and `sum` adds the parts up.
struct SharedSums {
  int64_t rank = 0, ranks = 1;
  std::function<double(double)> sum = [](double here) { return here; };
};

/// Base of every optimiser. Gradients stand in .grad() and are never changed. Derives from
/// torch::optim::Optimizer so that C++ users can put it wherever torch's are taken; one learning rate, set
/// per update by the schedule (or by torch's schedulers: it is the lr of the one parameter group), times each
/// parameter's own factor (Treatment::rate_factor), mostly 1.
class Optimizer : public torch::optim::Optimizer {
 public:
  explicit Optimizer(std::vector<ParameterInfo> parameters);
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update with the current learning rate. An undefined gradient counts as zero. A closure is called at the gradient point.
  torch::Tensor step(LossClosure closure = nullptr) final;

  /// Moves the weights to where the method wants the next gradient; step() and leave_gradient_point() move them back, to the same
  /// bits. Between updates they are those to be evaluated, stored and probed. Mostly both are one, and neither does anything.
  virtual void go_to_gradient_point() {}
  virtual void leave_gradient_point() {}

  void set_learning_rate(double value) { param_groups_.front().options().set_lr(value); }
  double learning_rate() const { return param_groups_.front().options().get_lr(); }

  /// Whether the steps from now on take norms, as they do by default. On a CPU they cost SGD and AdamW up to a tenth of a
  /// large step (docs/benchmarks.md); weights and state are the same bits either way.
  void take_norms(bool taken) { takes_norms_ = taken; }

  const std::vector<ParameterInfo>& parameter_table() const { return parameters_; }
  /// One entry per parameter, of the last step. On a GPU waits for it; who doesn't ask doesn't wait.
  const std::vector<ParameterStep>& last_step() const;
  /// One entry per parameter: weight decay, whether it may have a trust ratio, the factor on the learning rate.
  const std::vector<Treatment>& treatment_table() const { return treatments_; }
  /// For methods that scale layers by a trust ratio: what the reported one is; empty for the others.
  virtual std::string trust_ratio_definition() const { return {}; }
  bool has_trust_ratios() const { return !trust_ratio_definition().empty(); }

  /// P, the diagonal with which the method, momentum and weight decay aside, would step by
  /// -learning_rate() P^{-1} g: one positive number a weight, shaped as the parameters, all 1 for SGD, and
  /// for every method divided by Treatment::rate_factor. From the state as it stands and the gradient given,
  /// one tensor per parameter, where trust ratios depend on it.
  /// NaN where the state says nothing yet (Adam's moments before the first update).
  virtual std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& gradients) const;
  /// Where P is diagonal in another basis: orthogonal Q_1 x ... x Q_k for each parameter, P = Q D Q', and preconditioner() gives D.
  /// Empty for methods with no such basis; a parameter without one has no factors.
  virtual std::vector<KroneckerFactors> preconditioner_bases() const { return {}; }
  /// The largest learning_rate() lambda(P^{-1} H) at which steps on a quadratic with this P, held fixed, do
  /// not grow: 2 without momentum (Cohen et al., ICLR 2021, section 2 and appendix B; arXiv 2207.14484,
  /// section 3). NaN where the method has no such limit because P moves with the gradient.
  virtual double stability_limit() const = 0;
  /// The same for methods whose P moves with the gradient, with P held as it stands: a gauge and no limit, for how
  /// far a step is from where curvature stops it.
  virtual double frozen_stability_limit() const { return stability_limit(); }
  /// How far one gradient moves the weights in all updates together, over the learning rate and its trust
  /// ratio or preconditioner: (1 - dampening) / (1 - momentum), 1 for moving averages. learning_rate() gain() is
  /// the effective learning rate (Zhang et al. 2019, arXiv 1907.04164), of parameters whose factor is 1.
  virtual double gain() const { return 1; }

  /// Share of a batch's examples, its last ones, whose gradient the method wants again at the next weights; mostly 0.
  virtual double overlap() const { return 0; }
  /// Before a step() of a method with overlap: the mean gradients, at the weights of now, of the last batch's last examples
  /// (empty for the first) and of this batch's.
  virtual void set_overlap(std::vector<at::Tensor> /*with_last*/, std::vector<at::Tensor> /*with_next*/) {}

  /// From here on all processes make their steps together. Methods whose sums over weights aren't worth a message leave it.
  virtual void share_sums(const SharedSums& /*sums*/) {}

  /// Whether set_clean_gradients() does what it says.
  virtual bool takes_clean_gradients() const { return false; }
  /// For the next step(): what normalises it (second moments, trust ratios, clips inside the method) is of these gradients, one for each
  /// parameter, and its direction of .grad. Where both are the same the step is the same to the bit. A method whose ratio is of a
  /// moving average keeps that average of the clean gradients too, in its state, from the first such step to the first without.
  void set_clean_gradients(std::vector<at::Tensor> gradients);

  /// Everything that the next step depends on but parameters and learning rate: "momentum/conv1.weight", ...,
  /// and "updates" as an int64 scalar. Copies. load_state checks names, shapes and types (IoError).
  NamedTensors state() const;
  void load_state(const NamedTensors& state);

 protected:
  /// One update of all parameters, in place, number updates_done() + 1; gives its norms to report(). `lists` has weights
  /// and gradients, these of their weights' type and strides; after set_clean_gradients() the clean ones, and the clean twin.
  /// Runs without gradient recording.
  virtual void update(TensorLists& lists) = 0;
  /// Declares a zero-initialised state tensor for each parameter; for derived constructors. Empty for those that need none.
  void add_slot(const std::string& name);
  void add_slot(const std::string& name, const std::vector<bool>& needed);
  /// Declares tensors of shapes of their own, one for each parameter; an empty one where it isn't needed.
  void add_slot(const std::string& name, std::vector<at::Tensor> tensors) {
    slots_.emplace_back(name, std::move(tensors));
  }
  /// What preconditioner() is of a method that steps by no diagonal.
  std::vector<at::Tensor> no_diagonal() const;
  /// The first slot is to have a twin, "clean_" and its name, of the clean gradients while there are such.
  void add_clean_twin() { has_clean_twin_ = true; }
  /// The twin where there is one at present, else the slot itself.
  const std::vector<at::Tensor>& clean_first_slot() const { return twin_.empty() ? slot(0) : twin_; }
  /// Declares a whole number that is part of the state; `value` is a member of the derived class.
  void add_counter(const std::string& name, int64_t& value) { counters_.emplace_back(name, &value); }
  /// The same of a float64.
  void add_number(const std::string& name, double& value) { numbers_.emplace_back(name, &value); }
  size_t slot_count() const { return slots_.size(); }
  std::vector<at::Tensor>& slot(size_t which) { return slots_[which].second; }
  const std::vector<at::Tensor>& slot(size_t which) const { return slots_[which].second; }
  /// An empty one: the report lies on the GPU. Nothing of it is kept where no norms are taken.
  void report(const StepReport& report);
  /// For derived classes that can do without them.
  bool takes_norms() const { return takes_norms_; }
  int64_t updates_done() const { return updates_; }

  std::vector<ParameterInfo> parameters_;
  std::vector<Treatment> treatments_;  // no decay, no factor unless a derived constructor says so
  std::shared_ptr<KernelTables> tables_;

 private:
  TensorLists weights_and_gradients() const;
  void prepare_twin();
  std::string twin_name() const { return "clean_" + slots_.front().first; }
  void note(const StepReport& report) const;
  mutable std::vector<ParameterStep> last_step_;
  mutable bool report_is_on_gpu_ = false;
  bool takes_norms_ = true;
  int64_t updates_ = 0;
  std::vector<std::pair<std::string, int64_t*>> counters_{{"updates", &updates_}};
  std::vector<std::pair<std::string, double*>> numbers_;
  std::vector<std::pair<std::string, std::vector<at::Tensor>>> slots_;
  std::vector<at::Tensor> clean_gradients_, twin_;  // mostly empty
  bool has_clean_twin_ = false;
};

}  // namespace basin
