#include "hessian/spectrum.h"

#include <ATen/ATen.h>

#include <Eigen/Eigenvalues>

#include "core/math/tensor_norms.h"
#include "core/seed.h"
#include "hessian/lanczos.h"

namespace basin {
namespace {

/// The converged pairs as rows, each once where both ends met.
struct Locked {
  at::Tensor vectors;  // Q [k, n], undefined for none
  std::vector<double> values;
};

Locked lock(const TopEigenResult& pairs) {
  Locked locked;
  std::vector<at::Tensor> rows;
  for (const auto* end : {&pairs.largest, &pairs.smallest}) {
    for (const Eigenpair& pair : *end) {
      const bool seen = std::any_of(rows.begin(), rows.end(), [&](const at::Tensor& row) {
        return std::abs(row.dot(pair.vector).item<double>()) > 0.5;
      });
      if (!pair.converged || seen) continue;
      rows.push_back(pair.vector);
      locked.values.push_back(pair.value);
    }
  }
  std::sort(locked.values.begin(), locked.values.end());
  if (!rows.empty()) locked.vectors = at::stack(rows);
  return locked;
}

/// The cold run's own quadrature without the nodes of locked pairs: that of the rest, from the start's part
/// there.
Quadrature rest_of(const Quadrature& whole, const std::vector<double>& locked) {
  Quadrature rest = whole;
  for (const double value : locked) {
    const auto nearest = std::min_element(rest.nodes.begin(), rest.nodes.end(), [&](double a, double b) {
      return std::abs(a - value) < std::abs(b - value);
    });
    if (nearest == rest.nodes.end()) break;
    rest.weights.erase(rest.weights.begin() + (nearest - rest.nodes.begin()));
    rest.nodes.erase(nearest);
  }
  const double left = std::accumulate(rest.weights.begin(), rest.weights.end(), 0.0);
  for (double& weight : rest.weights) weight /= left;
  return rest;
}

class Sharing {
 public:
  Sharing(LinearOperator& op, const SpectrumOptions& options)
      : op_(op), options_(options), generator_(make_generator(derive_seed(options.pairs.seed, "starts"))) {}

  SharedSpectrum run() {
    result_.size = op_.size();
    KrylovSpace space;
    result_.pairs = lanczos_eigenpairs(op_, options_.pairs, &space);
    result_.products = result_.pairs.products;
    if (!space.vectors.defined()) return result_;
    if (space.vectors.size(0) == op_.size()) return exact(space.projected);
    locked_ = lock(result_.pairs);
    result_.known = locked_.values;
    TraceSamples trace(op_.size(), {space.vectors, space.products});
    result_.has_long_start = space.whole;
    if (space.whole) result_.starts.push_back(rest_of(quadrature_of(space.projected), locked_.values));
    for (int64_t i = 1; i < options_.starts; ++i) add_start(trace);
    for (int64_t i = 0; i < options_.trace_samples; ++i) add_sample(trace);
    result_.trace = trace.trace();
    result_.squared_frobenius = trace.squared_frobenius();
    return result_;
  }

 private:
  /// The basis spans everything: its projected matrix is A.
  SharedSpectrum exact(const Eigen::MatrixXd& projected) {
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(projected);
    result_.known.assign(eigen.eigenvalues().begin(), eigen.eigenvalues().end());
    result_.trace = {projected.trace(), 0, 0};
    result_.squared_frobenius = {projected.squaredNorm(), 0, 0};
    return result_;
  }

  void add_start(TraceSamples& trace) {
    at::Tensor z = random_signs(op_, generator_);
    if (locked_.vectors.defined()) z.sub_(at::mv(locked_.vectors.t(), at::mv(locked_.vectors, z)));
    at::Tensor first;
    const Quadrature quadrature = lanczos_quadrature(op_, z, options_.steps, locked_.vectors, &first);
    result_.products += static_cast<int64_t>(quadrature.nodes.size());
    if (quadrature.nodes.empty()) {
      result_.finite = false;
      return;
    }
    result_.starts.push_back(quadrature);
    trace.add(z, first * norm_of(z));
  }

  void add_sample(TraceSamples& trace) {
    const at::Tensor z = random_signs(op_, generator_), product = op_.apply(z).detach();
    ++result_.products;
    if (!std::isfinite(norm_of(product))) result_.finite = false;
    trace.add(z, product);
  }

  LinearOperator& op_;
  const SpectrumOptions& options_;
  at::Generator generator_;
  Locked locked_;
  SharedSpectrum result_;
};

}  // namespace

bool SharedSpectrum::may_miss(double threshold) const {
  if (starts.empty() || pairs.largest.empty() || pairs.largest.back().value <= threshold) return false;
  const double first = starts.front().mass_above(threshold);
  const bool alike = std::all_of(starts.begin(), starts.end(), [&](const Quadrature& start) {
    return start.mass_above(threshold) == first;
  });
  return !has_long_start || alike;
}

SampleMean SharedSpectrum::count_above(double threshold) const {
  const auto outer = static_cast<double>(
      std::count_if(known.begin(), known.end(), [&](double value) { return value > threshold; }));
  const double rest = static_cast<double>(size) - static_cast<double>(known.size());
  if (starts.empty() && rest == 0) return {outer, 0, 0};
  std::vector<double> samples;
  for (const Quadrature& start : starts) samples.push_back(outer + rest * start.mass_above(threshold));
  SampleMean mean = mean_of(samples);
  if (may_miss(threshold)) mean.standard_error = NAN;
  return mean;
}

SpectralDensity SharedSpectrum::density(double width, int64_t points) const {
  const double share = static_cast<double>(known.size()) / static_cast<double>(size);
  return spectral_density(starts, width, points, known, share);
}

SharedSpectrum shared_spectrum(LinearOperator& op, const SpectrumOptions& options) {
  return Sharing(op, options).run();
}

}  // namespace basin
