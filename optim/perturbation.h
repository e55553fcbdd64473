// defines: Perturbation, a gradient computed at a second point: SAM, ASAM and the gradient penalty.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/options.h"
#include "core/parameter.h"

namespace basin {

struct PerturbationOptions {
  std::string kind = "none";  // none | sam | asam | gradient_penalty
  double rho = 0.05;          // sam on CIFAR-10, Foret et al.; asam's own is 0.5: radii of different norms
  double eta = 0.01;          // asam
  double strength = 0.1;      // gradient_penalty: alpha
  double difference = 0.01;   // gradient_penalty: h, length of the step to the second point
  int64_t examples = 0;       // m: a displacement for each m examples of a batch; 0: one for the batch

  bool on() const { return kind != "none"; }
};
void bind_options(OptionTable& table, PerturbationOptions& options);

/// From g = g(w) to a displacement d, and from g(w + d) to the gradient G that the optimiser steps with; |.|
/// the Euclidean norm over all parameters together:
///   sam               d = rho g / |g|           G = g(w + d)
///                     (Foret et al. 2021, arXiv 2010.01412, equation 2 and algorithm 1)
///   asam              d = rho T^2 g / |T g|     G = g(w + d)
///                     T = |w| + eta, element by element, for weights and norm weights, and 1 for biases: the
///                     authors' code, which goes by the parameter's name (Kwon et al. 2021, arXiv 2102.11600,
///                     algorithm 1). With eta = 0 and no biases d is invariant under w1 -> a w1, w2 -> w2/a.
///   gradient_penalty  d = h g / |g|             G = g + alpha |g|/h (g(w + d) - g)
///                     the gradient of L + alpha/2 |grad L|^2, that is g + alpha H g, up to O(alpha h); exact on
///                     quadratics (Geiping et al. 2022, arXiv 2109.14119; their code's alpha is rate/4 block_strength).
/// Where |g| (or |T g|) is 0, d is 0. rho isn't portable: not between sam and asam, nor to codes of ASAM
/// without eta and with T on biases too.
///
/// Cost: a second gradient; a copy of the parameters, and one of g for the penalty. What can go wrong: h too
/// small for the type (g(w + d) - g is a difference of nearly equal numbers; 0.01 is the authors'); a caller
/// that throws between displace() and restore() leaves the displaced weights.
class Perturbation {
 public:
  /// ConfigError for an unknown kind and for "none".
  Perturbation(const std::vector<ParameterInfo>& parameters, const PerturbationOptions& options);

  /// w -> w + d(w, g). `gradients`: g, one tensor per parameter; they may be overwritten afterwards.
  void displace(const std::vector<at::Tensor>& gradients);
  /// w + d -> w, bit for bit; turns `gradients` from g(w + d) into G, in place.
  void restore(const std::vector<at::Tensor>& gradients);

 private:
  enum class Kind { sam, asam, gradient_penalty };
  static Kind kind_of(const std::string& name);

  std::vector<ParameterInfo> parameters_;
  PerturbationOptions options_;
  Kind kind_;
  std::vector<at::Tensor> weights_, gradients_;  // as they were before displace()
  double norm_ = 0;                              // |g|
};

}  // namespace basin
