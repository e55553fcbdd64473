// What is checked before a problem is measured.
#include "hessian/outside/outside_problem.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/hessian/outside/scripted_partner.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Script;
using Say = std::function<void(const std::string&)>;
using Twist =
    std::function<void(const std::string& ask, int64_t number, json& reply, SharedVectors& vectors)>;

std::string said_by_check(at::ScalarType dtype, const std::set<std::string>& leaves_out,
                          const Twist& twist = {}) {
  const testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 13, 1, dtype);
  Objective there(testing::tiny_mlp(1, dtype), LossKind::cross_entropy, batch.images, batch.labels, 5);
  Script script;
  script.leaves_out = leaves_out;
  if (twist) {
    script.twist = [&](const json& question, json& reply, SharedVectors& vectors, const Say&) {
      twist(question["ask"], question["number"], reply, vectors);
    };
  }
  testing::ScriptedPartner other(there, script);
  OutsideProblem problem(other.connect());
  return testing::said_by([&] { check_outside(problem, 1); });
}

TEST(CheckOutside, TakesWhatAnswersRight) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) EXPECT_EQ(said_by_check(dtype, {}), "");
}

TEST(CheckOutside, TakesWhatAnswersInPart) {
  for (const char* missing : {"loss", "gradient", "product", "batch_gradient", "batch_product", "losses"})
    EXPECT_EQ(said_by_check(at::kDouble, {missing}), "") << missing;
}

TEST(CheckOutside, RefusesALossThatChanges) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    EXPECT_THAT(said_by_check(dtype, {},
                              [](const std::string& ask, int64_t number, json& reply, SharedVectors&) {
                                if (ask == "loss")
                                  reply["loss"] =
                                      reply["loss"].get<double>() + 1e-4 * static_cast<double>(number);
                              }),
                HasSubstr("the examples must be the same each time (no shuffling, augmentation or dropout)"));
  }
}

// Their mean is the same.
TEST(CheckOutside, RefusesShuffledExamples) {
  EXPECT_THAT(said_by_check(at::kFloat, {},
                            [](const std::string& ask, int64_t number, json&, SharedVectors& vectors) {
                              if (ask == "losses") vectors.losses.copy_(vectors.losses.roll(number));
                            }),
              HasSubstr("in the same order (no shuffling, augmentation or dropout)"));
}

TEST(CheckOutside, RefusesProductsOfNoHessian) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    EXPECT_THAT(said_by_check(dtype, {},
                              [](const std::string& ask, int64_t, json&, SharedVectors& vectors) {
                                if (ask == "product") vectors.result.add_(vectors.direction.roll(1), 0.01);
                              }),
                HasSubstr("the products are not those of a Hessian"));
  }
}

// Halves add up; what a single example has is another loss's, as under a mean over tokens.
TEST(CheckOutside, RefusesABatchThatIsNoMeanOfItsExamples) {
  EXPECT_THAT(said_by_check(at::kFloat, {"loss", "losses"},
                            [](const std::string& ask, int64_t, json&, SharedVectors& vectors) {
                              if (ask == "batch_gradient" && vectors.share[0].item<double>() == 1)
                                vectors.result.mul_(1.01);
                            }),
              HasSubstr("isn't the mean of theirs one by one"));
}

TEST(CheckOutside, RefusesALossThatIsNoPlainMean) {
  EXPECT_THAT(said_by_check(at::kFloat, {},
                            [](const std::string& ask, int64_t, json&, SharedVectors& vectors) {
                              if (ask == "losses") vectors.losses.mul_(1.01);
                            }),
              HasSubstr("it has to be their plain mean"));
  EXPECT_THAT(said_by_check(at::kFloat, {},
                            [](const std::string& ask, int64_t, json&, SharedVectors& vectors) {
                              if (ask == "batch_gradient") vectors.result.mul_(1.01);
                            }),
              HasSubstr("the gradients of two halves of the examples don't add up to the gradient"));
  EXPECT_THAT(said_by_check(at::kFloat, {},
                            [](const std::string& ask, int64_t, json& reply, SharedVectors&) {
                              if (ask == "gradient") reply["loss"] = reply["loss"].get<double>() * 1.01;
                            }),
              HasSubstr("in the answer with the gradient"));
}

}  // namespace
}  // namespace basin
