// Objective::part() and with_logits() against sums written out.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "hessian/objective.h"
#include "tests/support/analytic_models.h"

namespace basin {
namespace {

struct Softmax {
  at::Tensor x = testing::sine_numbers({13, 4}), labels = at::arange(13).remainder(3);
  at::Tensor weight = testing::sine_numbers({3, 4}, 100);
  Objective objective{std::make_shared<testing::LinearModel>(weight.clone()), LossKind::cross_entropy, x,
                      labels, 5};

  double loss(const at::Tensor& index, double scale) const {
    const at::Tensor log_p = at::log_softmax(x.index_select(0, index).matmul(weight.t()) * scale, 1);
    return -log_p.gather(1, labels.index_select(0, index).unsqueeze(1)).mean().item<double>();
  }
  at::Tensor gradient(const at::Tensor& index, double scale) const {
    const at::Tensor chosen = x.index_select(0, index);
    const at::Tensor p = at::softmax(chosen.matmul(weight.t()) * scale, 1);
    const at::Tensor y = at::one_hot(labels.index_select(0, index), 3).to(at::kDouble);
    return ((p - y) * scale).t().matmul(chosen).div(index.size(0)).flatten();
  }
};

constexpr double kPartRounding = 1e-14;  // sums of some fifty float64 numbers of order 1

TEST(ObjectivePart, IsTheLossOfItsExamplesAlone) {
  Softmax s;
  const at::Tensor index = at::tensor({7, 2, 11, 0, 5, 9}, at::kLong);
  const std::unique_ptr<Problem> part = s.objective.part(index);
  EXPECT_EQ(part->examples(), 6);
  EXPECT_NEAR(part->loss(), s.loss(index, 1), kPartRounding);
  double loss = 0;
  EXPECT_LT((part->gradient(&loss) - s.gradient(index, 1)).abs().max().item<double>(), kPartRounding);
  EXPECT_NEAR(loss, s.loss(index, 1), kPartRounding);
  EXPECT_EQ(part->gradients_done(), 1);
  EXPECT_EQ(s.objective.gradients_done(), 0);
  EXPECT_EQ(s.objective.examples(), 13);
}

TEST(ObjectiveLogits, PassThroughTheMapInEveryNumber) {
  Softmax s;
  const at::Tensor all = at::arange(13);
  Objective tripled = s.objective.with_logits([](const at::Tensor& logits) { return logits * 3; });
  EXPECT_NEAR(tripled.loss(), s.loss(all, 3), kPartRounding);
  EXPECT_LT((tripled.gradient() - s.gradient(all, 3)).abs().max().item<double>(), kPartRounding);
  const at::Tensor few = at::tensor({1, 4}, at::kLong);
  EXPECT_LT((tripled.gradient_over(few) - s.gradient(few, 3)).abs().max().item<double>(), kPartRounding);
  EXPECT_NEAR(tripled.part(few)->loss(), s.loss(few, 3), kPartRounding);
  Objective flipped = s.objective.with_logits([](const at::Tensor& logits) { return -logits; });
  EXPECT_NE(flipped.accuracy(), s.objective.accuracy());
  EXPECT_NEAR(s.objective.loss(), s.loss(all, 1), kPartRounding);  // the first is as it was
}

}  // namespace
}  // namespace basin
