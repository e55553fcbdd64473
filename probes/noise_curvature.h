// defines: the probe noise_curvature.
#pragma once

#include <memory>

#include "probes/eigen_quantity.h"

namespace basin {

struct NoiseCurvatureOptions : EigenSolverOptions {
  NoiseCurvatureOptions() { count = 5; }
  int64_t groups = 16;         // of examples, a Hessian-vector product each
  int64_t trace_samples = 10;  // of traces and Frobenius norms, a product each
};
void bind_options(OptionTable& table, NoiseCurvatureOptions& options);

/// How gradient noise and curvature are related, in eval mode. With the gradients g_i of single examples,
/// their mean G and covariance Sigma, and the Hessian H of the mean loss of the n examples measured:
///
///   B = tr(H Sigma) / (G'HG), the Hessian-weighted noise scale (McCandlish et al., arXiv 1812.06162, eq.
///   2.8), at which a step of the best rate gains half of what one along G would; of a distribution and of
///   the N training examples, as noise_scale.h defines the two;
///
///   the `count` largest eigenvalues of C = 1/n sum_i (g_i - G)(g_i - G)';
///
///   overlap |U'V|_F^2 / k of their eigenvectors V with the Hessian's leading k = `count`, U;
///
///   alignment Tr(HC) / (|H|_F |C|_F), and Tr(HC) d / (Tr H Tr C) (Zhu et al., ICML 2019, arXiv 1803.00195;
///   1 where noise is isotropic), d parameters.
///
/// tr(H Sigma): probes/estimators/curved_noise.h, with the Hessian's leading pairs, which the overlap needs anyway.
/// Errors: jackknife over groups and Fieller's interval (B), residuals (eigenvalues), residuals over gaps
/// (overlap), groups and sign vectors (alignments, by the delta method, of the n examples).
///
/// Cost: 20-35 products for the Hessian's pairs, groups + 1 + trace_samples more; 15-30 and trace_samples
/// with C; 2 gradients and a pass of hessian/gradients/per_example_gradients.h, which refuses networks whose layers it
/// doesn't know. Memory: a basis of as many vectors, twice, and 2 groups + count vectors. What can go wrong:
/// G'HG is the difference of large numbers near a minimum, and where H has no positive curvature along G, B
/// is not resolved. Definitions: docs/probes.md#noise-and-curvature.
std::unique_ptr<Probe> make_noise_curvature(const NoiseCurvatureOptions& options);

}  // namespace basin
