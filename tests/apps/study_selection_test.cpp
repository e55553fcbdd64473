// The choice of a learning rate from trials whose order is plain by hand.
#include <gtest/gtest.h>

#include "apps/selection.h"
#include "core/toml_file.h"

namespace basin {
namespace {

RateTrial trial(double rate, const std::string& status, double validation_loss, double gradients = 0,
                const std::string& protocol = "A-epochs", const std::string& group = "g") {
  RateTrial t;
  t.group = group;
  t.protocol = protocol;
  t.status = status;
  t.rate = rate;
  t.validation_loss = validation_loss;
  t.gradients = gradients;
  return t;
}

TEST(ChooseRates, TakesTheLeastMeanValidationLoss) {
  // 0.1: mean 1.5; 0.2: mean 1.25; 0.4: one of two diverged.
  const auto choices =
      choose_rates({trial(0.1, "finished", 1.4), trial(0.1, "finished", 1.6), trial(0.2, "finished", 1.0),
                    trial(0.2, "finished", 1.5), trial(0.4, "finished", 0.5), trial(0.4, "diverged", NAN)});
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_EQ(choices[0].rate, 0.2);
  EXPECT_FALSE(choices[0].at_edge);
  ASSERT_EQ(choices[0].scores.size(), 3u);
  EXPECT_DOUBLE_EQ(choices[0].scores[1].validation_loss, 1.25);
  EXPECT_TRUE(std::isinf(choices[0].scores[2].validation_loss));
}

TEST(ChooseRates, SaysWhenTheBestIsAtTheEdge) {
  EXPECT_TRUE(choose_rates({trial(0.1, "finished", 1), trial(0.2, "finished", 2)})[0].at_edge);
}

TEST(ChooseRates, MatchedLossGoesByValidationLossOfThoseThatReachedTheTarget) {
  // 0.1 never got there, 0.4 is there with fewer gradients than 0.2 but a worse validation loss, 0.8
  // overshot.
  std::vector<RateTrial> trials = {
      trial(0.1, "target_not_reached", 0.1, 900, "B"), trial(0.2, "finished", 1.0, 500, "B"),
      trial(0.4, "finished", 1.1, 300, "B"), trial(0.8, "finished", 0.9, 100, "B")};
  trials[3].overshot = true;
  EXPECT_EQ(choose_rates(trials)[0].rate, 0.2);
}

TEST(ChooseRates, MatchedLossNeedsEverySeedAtTheTarget) {
  // 0.2 has the better mean but one of its two seeds ended above the target.
  EXPECT_EQ(
      choose_rates({trial(0.1, "finished", 1.5, 10, "B"), trial(0.1, "finished", 1.5, 10, "B"),
                    trial(0.2, "finished", 1.0, 10, "B"), trial(0.2, "target_not_reached", 1.0, 10, "B")})[0]
          .rate,
      0.1);
}

TEST(ChooseRates, EqualValidationLossGoesByGradientsThenByTheSmallerRate) {
  EXPECT_EQ(choose_rates({trial(0.1, "finished", 1, 500, "B"), trial(0.2, "finished", 1, 300, "B")})[0].rate,
            0.2);
  EXPECT_EQ(choose_rates({trial(0.1, "finished", 1, 300, "B"), trial(0.2, "finished", 1, 300, "B")})[0].rate,
            0.1);
}

TEST(ChooseRates, MatchedLossNeverReachedGoesByValidationLoss) {
  EXPECT_EQ(
      choose_rates({trial(0.1, "target_not_reached", 1.3, 900, "B"),
                    trial(0.2, "target_not_reached", 1.2, 900, "B"), trial(0.4, "diverged", NAN, 10, "B")})[0]
          .rate,
      0.2);
}

TEST(ChooseRates, WhereAllDivergeTakesTheSmallestAndSaysSo) {
  const auto choices = choose_rates({trial(0.2, "diverged", NAN), trial(0.1, "failed", NAN)});
  EXPECT_EQ(choices[0].rate, 0.1);
  EXPECT_FALSE(choices[0].any_ended);
}

TEST(ChooseRates, KeepsGroupsApartAndPrintsReadableToml) {
  const auto choices = choose_rates(
      {trial(0.1, "finished", 1, 0, "A-epochs", "b"), trial(0.2, "finished", 2, 0, "A-epochs", "b"),
       trial(0.1, "finished", 2, 0, "A-epochs", "a"), trial(0.2, "finished", 1, 0, "A-epochs", "a")});
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(chosen_rates(choices), (ChosenRates{{"a", 0.2}, {"b", 0.1}}));
  const std::string text = selection_toml(choices, Study{});
  EXPECT_NE(text.find("group = \"b\""), std::string::npos);
  EXPECT_NE(text.find("learning_rate = 0.2"), std::string::npos);
}

}  // namespace
}  // namespace basin
