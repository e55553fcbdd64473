// defines: the probe pac_bayes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/presets.h"
#include "probes/probe.h"

namespace basin {

struct PacBayesOptions : WithPreset {
  PacBayesOptions();
  std::vector<std::string> forms = {"plain", "magnitude"};
  double target = 0.1;  // the drop of accuracy, as a share
  double eps = 1e-3;    // magnitude: the least noise of a weight; the paper's
  int64_t draws = 10;   // of the noise
  double sigma_min = 1e-4, sigma_max = 2;
  std::string bisection = "geometric";  // geometric | arithmetic
  double tolerance = 0.01;              // of sigma, relative
  double drop_tolerance = 0;            // of the drop; 0: not asked
  int64_t iterations = 30;              // halvings at most
  std::string noise = "sigma";          // standard deviation: sigma, or sigma_squared as a tool has it
  std::string drop = "each";  // |change of accuracy| of each draw, or of their mean as a tool has it
  std::string divergence = "gaussians";  // of the bounds: gaussians, or distances of weights as a tool has it
};
void bind_options(OptionTable& table, PacBayesOptions& options);

/// The largest sigma at which noise on the weights costs 0.1 of the training accuracy on average (Jiang et
/// al., ICLR 2020, arXiv 1912.02178, appendix C):
///   plain      E_u |acc(w + u) - acc(w)| = 0.1,  u ~ N(0, sigma^2 I)
///   magnitude  the same with u_i ~ N(0, sigma^2 w_i^2 + eps^2)
/// and from it 1/sigma^2 and the bounds sqrt((KL/2 + ln(m / sigma) + 10) / m), KL that of the noisy weights
/// from a prior at the initial weights, for the magnitude form also from one at 0 (probes/estimators/pac_bayes_bound.h);
/// m training examples.
///
/// sigma in the weights' units, without units for magnitude. Cost: 17 to 25 looks of `draws` forward passes
/// each form, for sigma and both ends of its interval, which covers the choice of draws
/// (probes/estimators/sigma_search.h). What can go wrong: a network without 0.1 of accuracy to lose has no sigma
/// (not_resolved), nor has one that loses it beyond the range. All trainable parameters are moved,
/// normalisation's as they are, not folded into weights before. Definitions: docs/probes.md#pac-bayes.
std::unique_ptr<Probe> make_pac_bayes(const PacBayesOptions& options);

}  // namespace basin
