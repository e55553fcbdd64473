// Against the same estimates made again from what is left when a group of rows is taken out of a matrix of gradients.
#include "probes/estimators/curved_noise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/seed.h"

namespace basin {
namespace {

double number(const at::Tensor& value) { return value.item<double>(); }

/// Gradients and indefinite Hessians of single examples, and vectors u that are no eigenvectors of their
/// mean.
struct Problem {
  at::Tensor g, hs, h, u, values = at::tensor({1.5, -0.4}, at::kDouble);
  explicit Problem(int64_t n) {
    at::Generator generator = make_generator(8);
    g = at::randn({n, 6}, generator, at::kDouble) * at::linspace(0.3, 2, 6, at::kDouble) + 0.3;
    hs = at::randn({n, 6, 6}, generator, at::kDouble);
    hs = hs + hs.transpose(1, 2) + at::diag(at::linspace(-2, 9, 6, at::kDouble));
    h = hs.mean(0);
    u = at::randn({2, 6}, generator, at::kDouble) / 3;
  }
  void deflate_leading() {
    const auto [eigenvalues, vectors] = at::linalg_eigh(h);
    values = eigenvalues.narrow(0, 4, 2).contiguous();
    u = vectors.narrow(1, 4, 2).t().contiguous();
  }
  at::Tensor k() const { return (u.t() * values).mm(u); }
  at::Tensor hessian(const at::Tensor& index) const { return hs.index_select(0, index).mean(0); }

  CurvedProducts products(const at::Tensor& groups) const {
    const at::Tensor mean = g.mean(0);
    std::vector<at::Tensor> apart, in_group, with_group, mean_in_group, mean_with_group;
    for (const at::Tensor& group : groups.unbind()) apart.push_back(g.index_select(0, group).mean(0) - mean);
    const at::Tensor a = at::stack(apart);
    for (size_t j = 0; j < apart.size(); ++j) {
      const at::Tensor own = hessian(groups[static_cast<int64_t>(j)]);
      in_group.push_back((a.mm(own) * a).sum(1));
      with_group.push_back(a.mv(own.mv(apart[j])));
      mean_in_group.push_back(mean.dot(own.mv(mean)));
      mean_with_group.push_back(apart[j].dot(own.mv(mean)));
    }
    CurvedProducts p;
    p.values = values;
    p.along = g.mm(u.t());
    p.groups = groups;
    p.deviations = a.mm(h).mm(a.t());
    p.with_mean = a.mv(h.mv(mean));
    p.mean_square = number(mean.dot(h.mv(mean)));
    p.in_group = at::stack(in_group);
    p.with_group = at::stack(with_group);
    p.mean_in_group = at::stack(mean_in_group);
    p.mean_with_group = at::stack(mean_with_group);
    return p;
  }
  /// tr(K Sigma) from the examples `all`, tr((H - K) Sigma) from the rows of `groups`, which are among them,
  /// H that of `all`.
  double trace(const at::Tensor& all, const at::Tensor& groups) const {
    const at::Tensor rows = g.index_select(0, all), mean = rows.mean(0), rest = hessian(all) - k();
    const auto n = static_cast<double>(all.numel()), b = static_cast<double>(groups.size(1));
    const double in_k = number(((rows - mean).mm(k()) * (rows - mean)).sum()) / (n - 1);
    double beside = 0;
    for (const at::Tensor& group : groups.unbind()) {
      const at::Tensor apart = g.index_select(0, group).mean(0) - mean;
      beside += number(apart.dot(rest.mv(apart)));
    }
    return in_k + beside / static_cast<double>(groups.size(0)) * b * n / (n - b);
  }
};

at::Tensor in_groups(const at::Tensor& order, int64_t size) {
  const int64_t count = order.numel() / size;
  return order.narrow(0, 0, count * size).view({count, size});
}

TEST(CurvedNoise, IsTheEstimateOfTheExamplesThatAreLeft) {
  const Problem problem(23);
  const at::Tensor order = at::arange(23).mul(7).remainder(23),
                   groups = in_groups(order, 3);  // two left over
  const CurvedNoise found = curved_noise(problem.products(groups));
  EXPECT_NEAR(found.numbers.trace, problem.trace(order, groups), 1e-12);
  ASSERT_EQ(found.numbers.traces.size(), 7u);
  for (int64_t j = 0; j < 7; ++j) {
    const at::Tensor others = at::cat({groups.slice(0, 0, j), groups.slice(0, j + 1)});
    const at::Tensor left = at::cat({others.flatten(), order.slice(0, 21)});
    const at::Tensor mean = problem.g.index_select(0, left).mean(0);
    EXPECT_NEAR(found.numbers.traces[j], problem.trace(left, others), 1e-12) << j;
    EXPECT_NEAR(found.numbers.mean_squares[j], number(mean.dot(problem.hessian(left).mv(mean))), 1e-12) << j;
  }
}

TEST(CurvedNoise, OfSingleExamplesIsTheDefinitionWhateverIsDeflated) {
  Problem problem(15);
  const at::Tensor groups = in_groups(at::arange(15), 1), apart = problem.g - problem.g.mean(0);
  const double exact = number((apart.mm(problem.h) * apart).sum()) / 14;
  EXPECT_NEAR(curved_noise(problem.products(groups)).numbers.trace, exact, 1e-12);
  problem.values.mul_(5);
  const CurvedNoise found = curved_noise(problem.products(groups));
  EXPECT_NEAR(found.numbers.trace, exact, 1e-12);
  EXPECT_EQ(found.numbers.grouping_variance, 0);
}

// Over random groupings of the same examples: the mean is the definition, the spread the variance that is
// stated.
TEST(CurvedNoise, IsUnbiasedOverGroupingsWithTheErrorStated) {
  Problem problem(40);
  problem.deflate_leading();  // the spread is that of what is left to groups
  const at::Tensor apart = problem.g - problem.g.mean(0);
  const double exact = number((apart.mm(problem.h) * apart).sum()) / 39;
  const int64_t repetitions = 2000;
  at::Generator generator = make_generator(3);
  at::Tensor traces = at::empty({repetitions}, at::kDouble);
  double stated = 0;
  for (int64_t i = 0; i < repetitions; ++i) {
    const LeftOut numbers =
        curved_noise(problem.products(in_groups(at::randperm(40, generator, at::kLong), 4))).numbers;
    traces[i] = numbers.trace;
    stated += numbers.grouping_variance / static_cast<double>(repetitions);
  }
  const double variance = number(traces.var());
  EXPECT_NEAR(number(traces.mean()), exact, 4 * std::sqrt(variance / repetitions));
  // A variance of 2,000 has an error of 3 %; the formula takes products of pairs for independent, which ten
  // groups are but roughly: a tenth too little. With the products of what is deflated it is eight times too
  // much and more.
  EXPECT_NEAR(stated, variance, 0.25 * variance);
}

TEST(CurvedNoise, DeflationByLeadingEigenvectorsLeavesLessToGroups) {
  Problem problem(60);
  problem.deflate_leading();
  const CurvedNoise found = curved_noise(problem.products(in_groups(at::arange(60), 5)));
  EXPECT_LT(found.remainder_deviation, 0.5 * found.plain_deviation);
  const at::Tensor apart = problem.g - problem.g.mean(0);
  EXPECT_NEAR(found.deflated, number((apart.mm(problem.k()) * apart).sum()) / 59, 1e-12);
}

}  // namespace
}  // namespace basin
