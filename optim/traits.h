// defines: OptimizerTraits, properties of a method that follow from its options.
#pragma once

#include <string>
#include <vector>

namespace basin {

struct OptimizerTraits {
  double overlap = 0;  // Optimizer::overlap()
  std::vector<std::string> squares_in =
      {};  // slots of its state that hold squares of gradients; the others hold
           // gradients or steps
  std::vector<std::string> weights_in = {};  // ... but for these, which hold weights
  /// Whether it steps along P^{-1} of a (averaged) gradient, P diagonal in some basis: Optimizer::preconditioner() is NaN without.
  bool has_preconditioner = true;
  /// Whether each number of its state belongs to one weight, so that a symmetry of the network changes it with that weight.
  bool state_by_weight = true;
  bool steps_along_gradients =
      false;  // by gradients times one rate for all, so that SGD's noise scale is its own
  /// A tensor's step depends on the gradients of the others.
  bool couples_tensors = false;
  /// Its gradients are of other weights than those that it is evaluated at: Optimizer::go_to_gradient_point().
  bool gradients_elsewhere = false;
  /// Rounding can decide its steps: a basis that follows from statistics of gradients is open where these are degenerate.
  bool magnifies_rounding = false;
  double momentum = 0;            // share of its last step, or of its first moment, that it keeps
  std::string rate_in_slot = {};  // the slot of its state that has the learning rate as a factor; mostly none
};

}  // namespace basin
