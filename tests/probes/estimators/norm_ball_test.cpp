#include "probes/estimators/norm_ball.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/seed.h"

namespace basin {
namespace {

struct Balls {
  ParameterVector vector{{{"a.weight", "a", ParameterKind::weight, at::zeros({2, 3, 2, 2}, at::kDouble)},
                          {"a.bias", "a", ParameterKind::bias, at::zeros({2}, at::kDouble)},
                          {"b.weight", "b", ParameterKind::weight, at::zeros({4, 3}, at::kDouble)}}};
  NormBall linf{DescentNorm::linf, vector}, spectral{DescentNorm::spectral, vector};
  at::Tensor x = at::randn({vector.size()}, make_generator(1), at::kDouble);
  at::Tensor first(const at::Tensor& flat) const { return flat.narrow(0, 0, 24).reshape({2, 12}); }
  at::Tensor second(const at::Tensor& flat) const { return flat.narrow(0, 26, 12).reshape({4, 3}); }
  /// The largest singular value of any matrix, from eigenvalues of D'D.
  double spectral_norm(const at::Tensor& d) const {
    const auto largest = [](const at::Tensor& m) {
      return std::sqrt(at::linalg_eigvalsh(m.t().mm(m)).max().item<double>());
    };
    return std::max(largest(first(d)), largest(second(d)));
  }
};

TEST(NormBall, DualNormIsWhatTheFarthestPointReaches) {
  Balls b;
  EXPECT_NEAR(b.linf.dual_norm(b.x), b.linf.farthest(b.x).dot(b.x).item<double>(), 1e-12);
  EXPECT_NEAR(b.linf.dual_norm(b.x), b.x.abs().sum().item<double>(), 1e-12);
  EXPECT_NEAR(b.spectral.dual_norm(b.x), b.spectral.farthest(b.x).dot(b.x).item<double>(), 1e-12);
}

TEST(NormBall, NoPointOfTheBallIsFarther) {
  Balls b;
  EXPECT_NEAR(b.spectral_norm(b.spectral.farthest(b.x)), 1, 1e-12);
  at::Generator generator = make_generator(2);
  double nearest = 0;
  for (int i = 0; i < 2000; ++i) {
    at::Tensor d = b.spectral.farthest(b.x) + 0.3 * at::randn({b.vector.size()}, generator, at::kDouble);
    d.narrow(0, 24, 2).zero_();
    d = d / b.spectral_norm(d);
    nearest = std::max(nearest, d.dot(b.x).item<double>());
  }
  EXPECT_LT(nearest, b.spectral.dual_norm(b.x));
  EXPECT_GT(nearest, 0.5 * b.spectral.dual_norm(b.x)) << "no point came near";
}

TEST(NormBall, HoldsWhatIsNoMatrix) {
  Balls b;
  EXPECT_EQ(b.spectral.farthest(b.x).narrow(0, 24, 2).abs().sum().item<double>(), 0);
  at::Tensor other = b.x.clone();
  other.narrow(0, 24, 2).fill_(7);
  EXPECT_EQ(b.spectral.dual_norm(other), b.spectral.dual_norm(b.x));
}

// A matrix of rank one: only its direction, whatever an SVD gives for the others.
TEST(NormBall, DirectionsThatAreNotReachedStayAtZero) {
  Balls b;
  at::Tensor x = at::zeros_like(b.x);
  b.second(x).copy_(at::outer(at::ones({4}, at::kDouble), at::tensor({0.0, 3.0, 4.0}, at::kDouble)));
  const at::Tensor d = b.spectral.farthest(x);
  const at::Tensor expected =
      at::outer(at::full({4}, 0.5, at::kDouble), at::tensor({0.0, 0.6, 0.8}, at::kDouble));
  EXPECT_TRUE(at::allclose(b.second(d), expected, 0, 1e-14));
  EXPECT_EQ(b.first(d).abs().sum().item<double>(), 0);
}

}  // namespace
}  // namespace basin
