// defines: shared_spectrum(), every number that one Krylov pass and a few short starts give; SharedSpectrum.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/math/statistics.h"
#include "hessian/eigenpairs.h"
#include "hessian/quadrature.h"
#include "hessian/trace.h"

namespace basin {

struct SpectrumOptions {
  TopEigenOptions pairs;       // of the Krylov pass
  int64_t starts = 4;          // of the density, the Krylov pass among them; at least 2
  int64_t steps = 6;           // products of each further start
  int64_t trace_samples = 14;  // products for the trace alone, besides the first ones of the starts
};

/// A = Q diag(lambda) Q^T + P A P up to the residuals of the pairs, Q the converged ones, P = I - Q Q^T.
/// The outer part is known; the spectrum of the rest comes from quadratures of P A P over random starts in P.
struct SharedSpectrum {
  TopEigenResult pairs;
  int64_t size = 0;                // n
  int64_t products = 0;            // in all
  std::vector<double> known;       // eigenvalues taken for exact, ascending
  std::vector<Quadrature> starts;  // of the rest, one per start
  SampleMean trace{NAN, NAN, 0}, squared_frobenius{NAN, NAN, 0};
  bool finite = true;           // false: a product of a start or sample wasn't
  bool has_long_start = false;  // the Krylov pass is among the starts

  /// Whether the outer eigenvalues are to be believed (kMostAsymmetry), and the products that the rest is from.
  bool trusted() const { return !(pairs.asymmetry > kMostAsymmetry); }
  /// Whether there may be eigenvalues above `threshold` that no start has resolved: all wanted pairs are above it, and six products don't tell
  /// weak outliers from the bulk's edge. The long start would, and says so by differing from the others.
  bool may_miss(double threshold) const;
  /// Eigenvalues above `threshold`, and its mean and error over the starts; without an error where they may miss some.
  SampleMean count_above(double threshold) const;
  /// The density of all eigenvalues, smoothed by a normal of standard deviation `width`; integrates to 1.
  SpectralDensity density(double width, int64_t points) const;
};

/// Work is shared so (Ubaru, Chen & Saad 2017; Meyer et al. 2021; docs/curvature.md):
///  1. one cold Lanczos run gives the pairs wanted, its quadrature the first sample of the density, and its
///     whole space V deflates the trace;
///  2. each further start is a sign vector z, projected by P; its `steps` products are a sample of the rest,
///     where few steps do since the outliers are gone, and its first product is a sample of the trace;
///  3. `trace_samples` more sign vectors, one product each.
/// The samples of the trace share V and the pairs, so the errors are those given V; V does not depend on the
/// z, so the means are unbiased. The starts' quadratures share Q alone.
///
/// A Krylov pass that had to restart gives no sample of the density; one that spans everything (n <= 32)
/// gives all eigenvalues, without an error. Cost: products of lanczos_eigenpairs() + (starts - 1) steps +
/// trace_samples. Memory: that of its basis.
SharedSpectrum shared_spectrum(LinearOperator& op, const SpectrumOptions& options);

}  // namespace basin
