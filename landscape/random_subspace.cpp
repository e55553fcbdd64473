#include "landscape/random_subspace.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <Eigen/Cholesky>

#include "core/error.h"
#include "core/seed.h"

namespace basin {
namespace {

constexpr int64_t kRows = 1 << 16;  // rows of A drawn, or turned to float64, at a time
constexpr int64_t kMostBytes = int64_t{8} << 30;

// Rows of N(0, 1), drawn in float64 on the host whatever they are kept in: a seed names one matrix for every
// type and device.
at::Tensor gaussian_rows(int64_t n, int64_t p, uint64_t seed, at::ScalarType dtype, at::Device device) {
  at::Generator generator = make_generator(seed);
  at::Tensor matrix = at::empty({n, p}, at::TensorOptions(dtype).device(device));
  for (int64_t first = 0; first < n; first += kRows) {
    const int64_t count = std::min(kRows, n - first);
    matrix.narrow(0, first, count).copy_(at::randn({count, p}, generator, at::kDouble));
  }
  return matrix;
}

void refuse_what_does_not_fit(int64_t n, int64_t p, bool orthonormal, at::ScalarType dtype) {
  // A QR decomposition holds about three copies in float64.
  const int64_t bytes = n * p * (orthonormal ? 24 : static_cast<int64_t>(c10::elementSize(dtype)));
  if (bytes <= kMostBytes) return;
  throw ConfigError(
      fmt::format("a random subspace of dimension {} for {} parameters takes {:.1f} GiB, more than {} GiB: "
                  "lower subspace_dim, "
                  "or leave the space \"subspace\" out",
                  p, n, static_cast<double>(bytes) / (int64_t{1} << 30), kMostBytes >> 30));
}

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
  const bool orthonormal = distribution == SubspaceDistribution::orthonormal;
  refuse_what_does_not_fit(n, p, orthonormal, dtype);
  if (!orthonormal) {
    matrix_ = gaussian_rows(n, p, seed, dtype, device);
    return;
  }
  const at::Tensor drawn = gaussian_rows(n, p, seed, at::kDouble, at::kCPU);
  matrix_ = std::get<0>(at::linalg_qr(drawn, "reduced")).to(device, dtype);
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
