// Against the formulas, written out number by number.
#include "models/loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace basin {
namespace {

using Rows = std::vector<std::vector<double>>;

double entropy_of(const std::vector<double>& outputs, size_t label) {
  double sum = 0;
  for (const double f : outputs) sum += std::exp(f);
  return std::log(sum) - outputs[label];
}

at::Tensor tensor_of(const Rows& rows) {
  std::vector<at::Tensor> found;
  for (const auto& row : rows) found.push_back(at::tensor(row, at::kDouble));
  return at::stack(found);
}

// Sums of a few numbers in float64.
constexpr double kRounding = 1e-14;

TEST(Losses, OfTokensAreTheMeanOfTheirCrossEntropies) {
  const Rows first{{0.5, -1, 2}, {0, 0.25, 0}}, second{{3, 1, 1}, {-2, 0, 0.5}};
  const at::Tensor outputs = at::stack({tensor_of(first), tensor_of(second)});
  const at::Tensor labels = at::tensor({2, 0, 1, 2}, at::kLong).view({2, 2});
  const at::Tensor losses = example_losses(LossKind::token_cross_entropy, outputs, labels);
  ASSERT_EQ(losses.sizes(), (std::vector<int64_t>{2}));
  EXPECT_NEAR(losses[0].item<double>(), (entropy_of(first[0], 2) + entropy_of(first[1], 0)) / 2, kRounding);
  EXPECT_NEAR(losses[1].item<double>(), (entropy_of(second[0], 1) + entropy_of(second[1], 2)) / 2, kRounding);
  // The largest outputs are those of classes 2 and 1, and of 0 and 2.
  EXPECT_TRUE(at::equal(example_hits(outputs, labels), at::tensor({0.5, 0.5}, at::kDouble)));
}

TEST(Losses, OfTokensAreSmoothedOneByOne) {
  const Rows rows{{0.5, -1, 2}, {0, 0.25, 0}};
  const double s = 0.3;
  double expected = 0;
  for (const auto& [row, label] : {std::pair{rows[0], 2}, {rows[1], 0}})
    for (size_t c = 0; c < 3; ++c)
      expected += (static_cast<int>(c) == label ? 1 - s + s / 3 : s / 3) * entropy_of(row, c) / 2;
  const at::Tensor found =
      smoothed_losses(tensor_of(rows).unsqueeze(0), at::tensor({2, 0}, at::kLong).view({1, 2}), s);
  EXPECT_NEAR(found.item<double>(), expected, kRounding);
}

TEST(Losses, OfNumbersAreHalfSquaredDistances) {
  const at::Tensor outputs = tensor_of({{1, 2}, {0, -1}}), numbers = tensor_of({{0.5, 2}, {3, 1}});
  const at::Tensor losses = example_losses(LossKind::mse, outputs, numbers.to(at::kFloat));
  EXPECT_TRUE(at::equal(losses, at::tensor({0.125, 6.5}, at::kDouble)));
  EXPECT_TRUE(at::isnan(example_hits(outputs, numbers)).all().item<bool>());
  // A class stands for its indicator.
  const at::Tensor of_classes = example_losses(LossKind::mse, outputs, at::tensor({1, 0}, at::kLong));
  EXPECT_TRUE(at::equal(of_classes, at::tensor({1.0, 1.0}, at::kDouble)));
}

TEST(Losses, AreCheckedAgainstLabels) {
  const at::Tensor classes = at::zeros({4}, at::kLong), tokens = at::zeros({4, 3}, at::kLong),
                   numbers = at::zeros({4, 2});
  const auto check = [](LossKind kind, const at::Tensor& labels) {
    return testing::message_of([&] { check_loss(kind, labels, "mine"); });
  };
  EXPECT_EQ(check(LossKind::cross_entropy, classes), "no error");
  EXPECT_EQ(check(LossKind::mse, classes), "no error");
  EXPECT_EQ(check(LossKind::mse, numbers), "no error");
  EXPECT_EQ(check(LossKind::token_cross_entropy, tokens), "no error");
  EXPECT_EQ(
      check(LossKind::cross_entropy, tokens),
      "loss = \"cross_entropy\": the labels of mine are a class for each of an example's tokens; loss = "
      "token_cross_entropy fits them");
  EXPECT_EQ(check(LossKind::cross_entropy, numbers),
            "loss = \"cross_entropy\": the labels of mine are numbers; loss = mse fits them");
  EXPECT_EQ(
      check(LossKind::token_cross_entropy, classes),
      "loss = \"token_cross_entropy\": the labels of mine are one class per example; loss = cross_entropy "
      "or mse fits them");
}

}  // namespace
}  // namespace basin
