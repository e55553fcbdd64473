// defines: the probe sharpness_keskar.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "probes/probe.h"

namespace basin {

struct SharpnessKeskarOptions {
  std::vector<double> epsilons = {1e-3, 5e-4};  // the paper's two
  std::vector<std::string> spaces = {"full", "subspace", "relative"};
  std::vector<std::string> starts = {"random", "signed_gradient"};
  int64_t restarts = 1;                            // of the start "random"
  int64_t iterations = 10;                         // the paper's
  int64_t subspace_dim = 100;                      // the paper's
  std::string subspace_distribution = "gaussian";  // the paper names none; ours is recorded
  int64_t draws = 1;                               // of A
};
void bind_options(OptionTable& table, SharpnessKeskarOptions& options);

/// phi(eps, A) = 100 (max_{z in C} L(x + A z) - L(x)) / (1 + L(x)), C = { |z_i| <= eps (|(A^+ x)_i| + 1) }
/// (Keskar et al., ICLR 2017, Metric 2.1, eq. 3-4): A = I, or random n x p; and with |z_i| <= eps |x_i| for a
/// version that follows the scale of the weights. In percent of 1 + L.
///
/// The maximum is searched by ten iterations of L-BFGS-B from each start, so phi is a lower bound of the one
/// defined. z = 0 itself is no start: at a minimum its gradient is zero and the search would report 0. Loss
/// in float64 sums. Cost: 1 to 40 gradients per start, space and eps, as a rule 11. Definitions:
/// docs/probes.md#keskar-sharpness.
std::unique_ptr<Probe> make_sharpness_keskar(const SharpnessKeskarOptions& options);

}  // namespace basin
