#include "hessian/trace.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/seed.h"

namespace basin {
namespace {

at::Tensor gaussian(at::IntArrayRef shape, uint64_t seed) {
  at::Generator generator = make_generator(seed);
  return at::randn(shape, generator, at::kDouble);
}

at::Tensor signs(int64_t n, at::Generator& generator) {
  return at::randint(0, 2, {n}, generator, at::kDouble) * 2 - 1;
}

/// 60 unknowns, dense, indefinite, two large eigenvalues: what deflation is for.
at::Tensor matrix() {
  const auto [q, r] = at::linalg_qr(gaussian({60, 60}, 3));
  const at::Tensor d = at::cat({at::tensor({50.0, 20.0}, at::kDouble), at::linspace(-2, 3, 58, at::kDouble)});
  return q.matmul(at::diag(d)).matmul(q.t());
}

Deflation some_rows(const at::Tensor& a, int64_t m) {
  const at::Tensor v = std::get<0>(at::linalg_qr(a.matmul(gaussian({60, m}, 4)))).t().contiguous();
  return {v, v.matmul(a)};
}

TEST(TraceSamples, AllSignVectorsTogetherGiveTheExactAnswers) {
  // Over all 2^6 sign vectors the means are the expectations: no tolerance but rounding.
  const at::Tensor half = gaussian({6, 6}, 1), a = half + half.t();
  const at::Tensor v = std::get<0>(at::linalg_qr(gaussian({6, 2}, 2))).t().contiguous();
  for (const Deflation& deflation : {Deflation{}, Deflation{v, v.matmul(a)}}) {
    TraceSamples samples(6, deflation, TraceSamples::Keep::diagonal);
    for (int64_t bits = 0; bits < 64; ++bits) {
      const at::Tensor z = at::empty({6}, at::kDouble);
      for (int64_t i = 0; i < 6; ++i) z[i] = (bits >> i) & 1 ? 1.0 : -1.0;
      samples.add(z, a.matmul(z));
    }
    EXPECT_NEAR(samples.trace().value, a.trace().item<double>(), 1e-12);
    EXPECT_NEAR(samples.squared_frobenius().value, a.square().sum().item<double>(), 1e-11);
    EXPECT_TRUE(at::allclose(samples.diagonal().value, a.diag(), 1e-12, 1e-12));
  }
}

TEST(TraceSamples, IntervalCoversTheTraceAsOftenAsItSays) {
  const at::Tensor a = matrix();
  const Deflation deflation = some_rows(a, 6);
  const double exact = a.trace().item<double>();
  int64_t covered = 0;
  double error = 0, plain_error = 0;
  for (uint64_t repetition = 0; repetition < 200; ++repetition) {
    at::Generator generator = make_generator(1000 + repetition);
    TraceSamples deflated(60, deflation), plain(60, {});
    for (int i = 0; i < 20; ++i) {
      const at::Tensor z = signs(60, generator), az = a.matmul(z);
      deflated.add(z, az);
      plain.add(z, az);
    }
    const SampleMean estimate = deflated.trace();
    covered += std::abs(estimate.value - exact) <= 2.093 * estimate.standard_error;  // t(19) at 95 %
    error += estimate.standard_error / 200;
    plain_error += plain.trace().standard_error / 200;
  }
  // Binomial(200, 0.95): 181 to 197 holds with probability 0.993.
  EXPECT_GE(covered, 181);
  EXPECT_LE(covered, 197);
  EXPECT_LT(error, 0.5 * plain_error);
}

TEST(TraceSamples, DiagonalsErrorIsItsSpread) {
  const at::Tensor a = matrix();
  at::Generator generator = make_generator(5);
  TraceSamples samples(60, {}, TraceSamples::Keep::diagonal);
  std::vector<at::Tensor> single;
  for (int i = 0; i < 50; ++i) {
    const at::Tensor z = signs(60, generator), az = a.matmul(z);
    samples.add(z, az);
    single.push_back(z * az);
  }
  const at::Tensor all = at::stack(single);
  EXPECT_TRUE(at::allclose(samples.diagonal().value, all.mean(0), 1e-12, 1e-12));
  EXPECT_TRUE(at::allclose(samples.diagonal().standard_error, all.std(0) / std::sqrt(50.0), 1e-10, 1e-12));
}

}  // namespace
}  // namespace basin
