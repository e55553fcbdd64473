// defines: gaussian_product(), the centre of a product of Gaussians fitted to the samples of several chains.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace basin {

struct GaussianProduct {
  at::Tensor centre;       // [n], float64
  int64_t directions = 0;  // of the subspace; 0: the centre is the mean
};

/// Neiswanger, Wang & Xing 2014 (arXiv 1311.4780), section 3.1, in a subspace. Samples X_c [m, n], float64, of chains c = 1 ... k have the
/// means mu_c, and these the mean mu; U [n, d] are the leading principal directions of all deviations x - mu_c, z_c = U' (mu_c - mu), and
/// S_c [d, d] is the covariance of the chain's samples along them (divided by m - 1) plus 1e-6 of their mean variance. The product of
/// the k Gaussians N(z_c, S_c) has its centre at
///   z = (sum_c S_c^-1)^-1 sum_c S_c^-1 z_c,
/// and what is returned is mu + U z: outside of the subspace the chains' mean, for a fit there would be one of less than one sample for
/// each direction. d is at most `directions`, m - 1 and the rank of the deviations. Where a chain doesn't move at all it has no Gaussian:
/// then mu is returned.
///
/// Iterates of SGD are neither independent nor from a posterior, so the Gaussians say only where each chain moves how much. Cost: k m
/// vectors in memory, (k m)^2 inner products.
GaussianProduct gaussian_product(const std::vector<at::Tensor>& samples, int64_t directions);

}  // namespace basin
