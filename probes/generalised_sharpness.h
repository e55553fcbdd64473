// defines: the probe generalised_sharpness.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "probes/probe.h"

namespace basin {

struct GeneralisedSharpnessOptions {
  std::vector<std::string> norms = {"linf", "spectral"};
  int64_t restarts = 2;     // random starts, besides the gradient
  int64_t iterations = 30;  // products of a search
  double tolerance = 1e-2;
};
void bind_options(OptionTable& table, GeneralisedSharpnessOptions& options);

/// Sharpness in the norm that a method descends by (Islamov, Crawshaw, Cohen & Gower 2026, arXiv 2603.05002):
///   S = max_{|d| <= 1} d'Hd,  in loss per weight^2
/// over |d|_inf (signSGD, Lion) and over the largest spectral norm of d's matrices (Muon without momentum), other parameters
/// held (probes/estimators/norm_ball.h); in the Euclidean norm it is lambda_1. Steepest descent w <- w - eta |g|_* d*, d* the
/// farthest point of the ball along g and |g|_* the dual norm, trains at 2 / eta. A method that steps by its rate alone, w <- w - eta d*,
/// has eta S / |g|_* in place of eta S; that number, with the gradient over the examples measured, is given too.
///
/// The maximum is searched by Frank-Wolfe steps (hessian/quadratic_maximum.h) from d* and from random vectors after four steps of
/// power iteration, so S is a lower bound of the one defined; its uncertainty is the spread of the searches. Cost: 1 to `iterations`
/// + 1 Hessian-vector products per search, as a rule 2 to 8, and the four; spectral an SVD of each matrix with each. Memory: five
/// vectors. Can go wrong: local maxima; where H is indefinite a search may end at 0, and S is at least that, since d = 0 is in the
/// ball; not_converged where the best search was not stationary. Definitions: docs/probes.md#generalised-sharpness.
std::unique_ptr<Probe> make_generalised_sharpness(const GeneralisedSharpnessOptions& options);

}  // namespace basin
