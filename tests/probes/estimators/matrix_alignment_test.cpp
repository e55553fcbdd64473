#include "probes/estimators/matrix_alignment.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/seed.h"

namespace basin {
namespace {

MatrixSums exact(const at::Tensor& a) {
  return {{a.trace().item<double>(), 0, 0}, {a.square().sum().item<double>(), 0, 0}};
}

TEST(MatrixAlignment, OfExactNumbersIsTheDefinition) {
  const at::Tensor a = at::tensor({2.0, 1.0, 1.0, 3.0}).view({2, 2}),
                   b = at::tensor({1.0, 0.0, 0.0, 4.0}).view({2, 2});
  // tr(AB) = 2 + 12, |A|_F^2 = 15, |B|_F^2 = 17, traces 5 and 5.
  const Estimate product{14, 0, 14, 14};
  const Estimate cosine = cosine_alignment(product, exact(a), exact(b), 2);
  EXPECT_NEAR(cosine.value, 14 / std::sqrt(15.0 * 17.0), 1e-15);
  EXPECT_EQ(cosine.error, 0);
  const Estimate traces = trace_alignment(product, exact(a), exact(b), 2, 2);
  EXPECT_NEAR(traces.value, 14.0 * 2 / 25, 1e-15);
  EXPECT_EQ(traces.error, 0);
  // Isotropic noise: 1. A negative trace only turns the sign.
  const at::Tensor one = at::eye(2, at::kDouble);
  EXPECT_NEAR(trace_alignment({5, 0, 5, 5}, exact(a), exact(one), 2, 2).value, 1, 1e-15);
  EXPECT_NEAR(trace_alignment({-14, 0, -14, -14}, exact(-a), exact(b), 2, 2).value, 14.0 * 2 / 25, 1e-15);
}

TEST(MatrixAlignment, ErrorsAreThoseOfTheSpread) {
  // Independent normal estimates with 5 % errors and less.
  const double product = 14, fa = 15, fb = 17, ta = 5, tb = 5, error = 0.03;
  at::Generator generator = make_generator(1);
  const int64_t repetitions = 2000;
  const at::Tensor z = at::randn({repetitions, 5}, generator, at::kDouble) * error + 1;
  at::Tensor cosines = at::empty({repetitions}, at::kDouble), traces = at::empty_like(cosines);
  int64_t cosine_in = 0, trace_in = 0;
  const double cosine = product / std::sqrt(fa * fb), ratio = product * 2 / (ta * tb);
  for (int64_t i = 0; i < repetitions; ++i) {
    const auto drawn = [&](int64_t k, double value) { return value * z[i][k].item<double>(); };
    const Estimate p{drawn(0, product), product * error, 0, 0};
    const MatrixSums a{{drawn(3, ta), ta * error, 10}, {drawn(1, fa), fa * error, 10}};
    const MatrixSums b{{drawn(4, tb), tb * error, 10}, {drawn(2, fb), fb * error, 10}};
    const Estimate c = cosine_alignment(p, a, b, 1.96), t = trace_alignment(p, a, b, 2, 1.96);
    cosines[i] = c.value;
    traces[i] = t.value;
    cosine_in += c.low <= cosine && cosine <= c.high;
    trace_in += t.low <= ratio && ratio <= t.high;
  }
  // The delta method: sqrt(1 + 1/4 + 1/4) and sqrt(3) times 3 %; a spread of 2,000 has an error of 1.6 %.
  EXPECT_NEAR(cosines.std().item<double>(), cosine * error * std::sqrt(1.5), 0.07 * cosine * error);
  EXPECT_NEAR(traces.std().item<double>(), ratio * error * std::sqrt(3.0), 0.1 * ratio * error);
  // 95 % of 2,000 with a standard deviation of 10.
  EXPECT_NEAR(cosine_in, 1900, 40);
  EXPECT_NEAR(trace_in, 1900, 40);
}

TEST(MatrixAlignment, WithoutATraceThereIsNoRatio) {
  const MatrixSums a{{0.1, 1, 10}, {15, 1, 10}}, b{{5, 0.1, 10}, {17, 1, 10}};
  const Estimate ratio = trace_alignment({14, 1, 12, 16}, a, b, 2, 2.3);
  EXPECT_TRUE(std::isnan(ratio.error));
  EXPECT_TRUE(std::isinf(ratio.low) && std::isinf(ratio.high));
}

}  // namespace
}  // namespace basin
