// defines: PointEvaluator, loss and accuracy of a network anywhere in its weight space; StatisticsMode.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <string>

#include "hessian/objective.h"
#include "landscape/state_vector.h"

namespace basin {

/// Where batch normalisation takes its running statistics at a point.
///   reset        estimated anew there, as averages of ghost-batch statistics over the training examples
///                (Garipov et al. 2018, arXiv 1802.10026, appendix A.2): what training would have left
///   interpolate  they are part of the point, like the weights
///   frozen       those that the network had at the start, whatever the weights
enum class StatisticsMode { reset, interpolate, frozen };
StatisticsMode statistics_mode(const std::string& name);  // ConfigError for anything else

/// Over one set of examples. loss_error: standard error of the mean over examples, as a sample of what they
/// were drawn from. NaN where a loss is not finite.
struct SetScore {
  double loss = std::numeric_limits<double>::quiet_NaN();
  double loss_error = std::numeric_limits<double>::quiet_NaN();
  double accuracy = std::numeric_limits<double>::quiet_NaN();
  at::Tensor losses, correct;  // by example, float64 on the host, where asked for
};
/// A set of examples and their labels (on the objective's device), which accuracy asks for.
struct LabelledSet {
  Objective* objective = nullptr;  // null: there is no such set
  at::Tensor labels;
};
/// Where the network stands, in one forward pass, which ranks that share the objective share; the loss has the very bits of
/// Objective::loss().
SetScore score(const LabelledSet& set, bool keep_examples = false);

struct PointScore {
  SetScore train, test;  // test: NaN where there is no test set
  bool finite = false;   // of all sets that there are
};

/// L and accuracy at any state vector, on the training and the test examples. The network is put back, bit
/// for bit, when this goes.
///
/// Cost of a point: one forward pass over each set, and with `reset` one more over the training examples
/// where the network has batch statistics. Memory: a copy of the network. What can go wrong: `interpolate`
/// beyond its ends may make variances negative, so the loss NaN; `frozen` shows barriers that are nothing but
/// wrong statistics.
class PointEvaluator {
 public:
  struct Setup {
    StatisticsMode statistics = StatisticsMode::reset;
    int64_t ghost_batch = 256;  // with reset: of the statistics
  };
  /// Both objectives are of one model and outlive this.
  PointEvaluator(LabelledSet train, LabelledSet test, const Setup& setup);
  ~PointEvaluator();
  PointEvaluator(const PointEvaluator&) = delete;
  PointEvaluator& operator=(const PointEvaluator&) = delete;

  const StateVector& states() const { return states_; }
  /// The network as it was when this was made.
  const at::Tensor& origin() const { return origin_; }
  bool has_test() const { return test_.objective != nullptr; }

  /// Puts the network at `state`, its running statistics as the mode says. It stays there.
  void place(const at::Tensor& state);
  PointScore at(const at::Tensor& state, bool keep_examples = false);
  void set_statistics(StatisticsMode mode) { setup_.statistics = mode; }

 private:
  LabelledSet train_, test_;
  Setup setup_;
  StateVector states_;
  at::Tensor origin_;
};

}  // namespace basin
