#include "probes/estimators/subspace_overlap.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/seed.h"

namespace basin {
namespace {

at::Tensor random_symmetric(int64_t size, uint64_t seed) {
  const at::Tensor a = at::randn({size, size}, make_generator(seed), at::kDouble);
  return a + a.t();
}

/// The k + 1 leading eigenvectors, each turned a little in a random direction, with their true residuals.
std::vector<Eigenpair> perturbed_pairs(const at::Tensor& a, int64_t k, double by, uint64_t seed) {
  const auto [values, vectors] = at::linalg_eigh(a);
  const int64_t n = a.size(0);
  const at::Tensor top = vectors.narrow(1, n - k - 1, k + 1);
  const at::Tensor noise = at::randn(top.sizes(), make_generator(seed), at::kDouble);
  const at::Tensor q = std::get<0>(at::linalg_qr(top + by * noise));
  std::vector<Eigenpair> pairs;
  for (int64_t i = k; i >= 0; --i) {
    const at::Tensor v = q.select(1, i).contiguous(), w = a.mv(v);
    Eigenpair pair;
    pair.value = v.dot(w).item<double>();
    pair.residual = (w - pair.value * v).norm().item<double>();
    pair.converged = true;
    pair.vector = v;
    pairs.push_back(pair);
  }
  return pairs;
}

at::Tensor exact_space(const at::Tensor& a, int64_t k) {
  const at::Tensor vectors = std::get<1>(at::linalg_eigh(a));
  return vectors.narrow(1, a.size(0) - k, k);
}

TEST(SubspaceOverlap, IsTheMeanSquaredCosineOfThePrincipalAngles) {
  const at::Tensor a = random_symmetric(12, 1), b = random_symmetric(12, 2);
  const TopSpace u(perturbed_pairs(a, 3, 0, 3), 3, 12), v(perturbed_pairs(b, 3, 0, 4), 3, 12);
  const at::Tensor cosines = at::linalg_svdvals(exact_space(a, 3).t().mm(exact_space(b, 3)));
  const Overlap found = overlap_of(u, v);
  EXPECT_NEAR(found.value, cosines.square().mean().item<double>(), 1e-13);
  EXPECT_LT(found.bound, 1e-12);
  EXPECT_NEAR(overlap_of(u, u).value, 1, 1e-14);
}

TEST(SubspaceOverlap, OfInexactVectorsIsWithinItsBound) {
  const at::Tensor a = random_symmetric(12, 1), b = random_symmetric(12, 2);
  const at::Tensor exact_u = exact_space(a, 3), exact_v = exact_space(b, 3);
  const double exact = exact_u.t().mm(exact_v).square().sum().item<double>() / 3;
  double largest_use = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const TopSpace u(perturbed_pairs(a, 3, 2e-3, 100 + seed), 3, 12);
    const TopSpace v(perturbed_pairs(b, 3, 2e-3, 200 + seed), 3, 12);
    // |sin Theta|_F^2 = k - |U' exact|_F^2
    const double sine = std::sqrt(std::max(0.0, 3 - u.vectors.mm(exact_u).square().sum().item<double>()));
    EXPECT_LE(sine, u.angle);
    const Overlap found = overlap_of(u, v);
    EXPECT_LE(std::abs(found.value - exact), found.bound);
    EXPECT_LT(found.bound, 0.2);
    largest_use = std::max(largest_use, sine / u.angle);
  }
  EXPECT_GT(largest_use, 0.2);  // a bound that says something
}

TEST(SubspaceOverlap, WithoutAGapThereIsNoSpace) {
  const at::Tensor a = at::diag(at::tensor({5.0, 2.0, 2.0, 1.0}));
  EXPECT_TRUE(std::isinf(TopSpace(perturbed_pairs(a, 2, 0, 1), 2, 4).angle));
  EXPECT_LT(TopSpace(perturbed_pairs(a, 1, 0, 1), 1, 4).angle, 1e-14);
}

TEST(SubspaceOverlap, OfAllDirectionsIsOne) {
  const at::Tensor a = random_symmetric(4, 1);
  std::vector<Eigenpair> pairs = perturbed_pairs(a, 3, 0.1, 5);
  const TopSpace all(pairs, 7, 4);
  EXPECT_EQ(all.angle, 0);
  EXPECT_NEAR(overlap_of(all, all).value, 1, 1e-13);
  pairs[2].converged = false;
  EXPECT_FALSE(TopSpace(pairs, 3, 4).converged);
  EXPECT_TRUE(TopSpace(pairs, 2, 4).converged);
}

}  // namespace
}  // namespace basin
