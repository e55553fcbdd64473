#include "landscape/random_subspace.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <Eigen/Cholesky>

#include "core/error.h"
#include "core/seed.h"

namespace basin {
namespace {

constexpr int64_t kRows = 1 << 16;  // rows of A turned to float64 at a time

}  // namespace

const char* to_string(SubspaceDistribution distribution) {
  return distribution == SubspaceDistribution::gaussian ? "gaussian" : "orthonormal";
}

SubspaceDistribution subspace_distribution(const std::string& name) {
  if (name == "gaussian") return SubspaceDistribution::gaussian;
  if (name == "orthonormal") return SubspaceDistribution::orthonormal;
  throw ConfigError(fmt::format("unknown subspace distribution \"{}\"; known: gaussian, orthonormal", name));
}

RandomSubspace::RandomSubspace(int64_t n, int64_t p, SubspaceDistribution distribution, uint64_t seed,
                               at::ScalarType dtype, at::Device device) {
  if (p < 1 || p > n)
    throw ConfigError(fmt::format("subspace_dim = {} violates 1 <= subspace_dim <= {}", p, n));
  at::NoGradGuard no_grad;
  at::Generator generator = make_generator(seed);
  // Always drawn on the host, so that a seed names the same subspace on every device.
  const bool orthonormal = distribution == SubspaceDistribution::orthonormal;
  at::Tensor drawn = at::randn({n, p}, generator, orthonormal ? at::kDouble : dtype);
  if (orthonormal) drawn = std::get<0>(at::linalg_qr(drawn, "reduced"));
  matrix_ = drawn.to(device, dtype);
}

at::Tensor RandomSubspace::expand(const at::Tensor& y) const {
  return matrix_.mv(y.to(matrix_.device(), matrix_.scalar_type()));
}

at::Tensor RandomSubspace::project(const at::Tensor& g) const {
  return matrix_.t().mv(g.to(matrix_.device(), matrix_.scalar_type()));
}

at::Tensor RandomSubspace::coordinates(const at::Tensor& x) const {
  const int64_t p = dimension();
  at::Tensor gram = at::zeros({p, p}, at::kDouble), right = at::zeros({p}, at::kDouble);
  for (int64_t first = 0; first < size(); first += kRows) {
    const int64_t count = std::min(kRows, size() - first);
    const at::Tensor rows = matrix_.narrow(0, first, count).to(at::kCPU, at::kDouble);
    gram.addmm_(rows.t(), rows);
    right.addmv_(rows.t(), x.narrow(0, first, count).to(at::kCPU, at::kDouble));
  }
  using Map = Eigen::Map<Eigen::VectorXd>;
  const Eigen::Map<Eigen::MatrixXd> gram_matrix(gram.data_ptr<double>(), p,
                                                p);  // symmetric: the layout is no matter
  at::Tensor solution = at::empty({p}, at::kDouble);
  Map(solution.data_ptr<double>(), p) = gram_matrix.ldlt().solve(Map(right.data_ptr<double>(), p));
  return solution;
}

}  // namespace basin
