// The choice of a candidate from trials whose order is plain by hand, and how sure it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/files.h"
#include "study/tuning_reader.h"
#include "sweep/tuning/selection_file.h"
#include "sweep/tuning/sensitivity.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

Candidate candidate(double rate) {
  return {static_cast<int64_t>(std::llround(1000 * rate)), {{"learning_rate", rate, NAN, Edge::none}}};
}

Trial trial(double rate, RunState status, double validation_loss, double gradients = 0,
            const std::string& protocol = "A-epochs", const std::string& group = "g") {
  Trial t;
  t.group = group;
  t.when = {{"optimizer", group}};
  t.protocol = protocol;
  t.status = status;
  t.candidate = candidate(rate);
  t.validation_loss = validation_loss;
  t.gradients = gradients;
  return t;
}

Trial with_losses(double rate, std::vector<double> losses) {
  Trial t = trial(rate, RunState::finished,
                  std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size()));
  t.losses = std::move(losses);
  return t;
}

double winner(const std::vector<Trial>& trials) { return choose(trials).at(0).winner.rate(); }

TEST(Choose, TakesTheLeastMeanValidationLoss) {
  // 0.1: mean 1.5; 0.2: mean 1.25; 0.4: one of two diverged.
  const auto choices = choose({trial(0.1, RunState::finished, 1.4), trial(0.1, RunState::finished, 1.6),
                               trial(0.2, RunState::finished, 1.0), trial(0.2, RunState::finished, 1.5),
                               trial(0.4, RunState::finished, 0.5), trial(0.4, RunState::diverged, NAN)});
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_EQ(choices[0].winner.rate(), 0.2);
  ASSERT_EQ(choices[0].scores.size(), 3u);
  EXPECT_DOUBLE_EQ(choices[0].scores[1].validation_loss, 1.25);
  EXPECT_TRUE(std::isinf(choices[0].scores[2].validation_loss));
  EXPECT_EQ(choices[0].scores[2].diverged, 1);
  EXPECT_THAT(choices[0].order, ElementsAre(1, 0, 2));
}

TEST(Choose, GoesByGradientsWhereAsked) {
  // 0.1 is the fastest and never got there; 0.4 overshot and has the worst loss, 0.8 ties with it.
  std::vector<Trial> trials = {
      trial(0.1, RunState::target_not_reached, 0.1, 50, "B"), trial(0.2, RunState::finished, 1.0, 500, "B"),
      trial(0.4, RunState::finished, 1.1, 300, "B"), trial(0.8, RunState::finished, 0.9, 300, "B")};
  trials[2].overshot = true;
  const Choice choice = choose(trials, kByGradients)[0];
  EXPECT_THAT(choice.order, ElementsAre(3, 2, 1, 0));
  const Sensitivity sure = sensitivity_of(choice);
  EXPECT_EQ(sure.status, LossComparison::by_gradients);
  EXPECT_EQ(sure.second, choice.scores[2].candidate.trial);
  EXPECT_FALSE(sure.like_winner.has_value());
  EXPECT_TRUE(std::isnan(sure.distance));
}

// By hand: 0.2 has the fewest errors (1 of 4) and the worst loss; 0.4 never got to the target. The second has one error more on example
// 0 and one less on none: differences 1, 0, 0, 0, mean 1/4, sd 1/2.
TEST(Choose, GoesByErrorsWhereAsked) {
  std::vector<Trial> trials = {with_losses(0.1, {1, 1, 1, 1}), with_losses(0.2, {3, 0, 0, 9}),
                               with_losses(0.4, {0, 0, 0, 0})};
  const std::vector<std::vector<double>> errors = {{1, 0, 0, 1}, {0, 0, 0, 1}, {0, 0, 0, 0}};
  for (size_t i = 0; i < 3; ++i) {
    trials[i].protocol = "B";
    trials[i].errors = errors[i];
    trials[i].validation_error = std::accumulate(errors[i].begin(), errors[i].end(), 0.0) / 4;
  }
  trials[2].status = RunState::target_not_reached;
  const Choice choice = choose(trials, kByErrors)[0];
  EXPECT_THAT(choice.order, ElementsAre(1, 0, 2));
  EXPECT_EQ(choose(trials)[0].winner.rate(), 0.1);
  const Sensitivity sure = sensitivity_of(choice);
  EXPECT_EQ(sure.status, LossComparison::paired);
  EXPECT_EQ(sure.second, 100);
  EXPECT_DOUBLE_EQ(sure.to_second.value, 0.25);
  EXPECT_DOUBLE_EQ(sure.to_second.standard_error, 0.25);
  EXPECT_DOUBLE_EQ(sure.distance, 1);
  EXPECT_THAT(sure.like_winner, Optional(ElementsAre(100)));
  trials[1].validation_error = trials[0].validation_error = 0.5;  // equal: the loss decides
  EXPECT_EQ(choose(trials, kByErrors)[0].winner.rate(), 0.1);
}

// Both candidates have 275 wrong of 3 x 500. As means of shares, x/3 one by one, the sums differ in the last bit and the loss is not
// asked.
TEST(Choose, EqualErrorsOverSeedsAreATieForTheLossToDecide) {
  const auto with_error = [](double rate, int wrong, double loss) {
    Trial t = trial(rate, RunState::finished, loss);
    t.validation_examples = 500;
    t.validation_error = 1 - (500 - wrong) / 500.;
    return t;
  };
  const std::vector<int> one = {127, 58, 90}, two = {134, 65, 76};
  for (const bool swapped : {false, true}) {
    std::vector<Trial> trials;
    for (const int wrong : swapped ? two : one) trials.push_back(with_error(0.05, wrong, 2));
    for (const int wrong : swapped ? one : two) trials.push_back(with_error(0.1, wrong, 1));
    const Choice choice = choose(trials, kByErrors)[0];
    EXPECT_EQ(choice.winner.rate(), 0.1) << swapped;
    EXPECT_DOUBLE_EQ(choice.scores[0].validation_error, 275 / 1500.);
    EXPECT_EQ(choice.scores[0].validation_error, choice.scores[1].validation_error);
  }
}

TEST(Choose, EqualGradientsOverSeedsAreATieForTheLossToDecide) {
  const auto with_gradients = [](double rate, std::vector<double> gradients, double loss) {
    std::vector<Trial> trials;
    for (const double g : gradients) trials.push_back(trial(rate, RunState::finished, loss, g, "B"));
    return trials;
  };
  const std::vector<double> one = {127, 58, 90}, two = {134, 65, 76};
  for (const bool swapped : {false, true}) {
    std::vector<Trial> trials = with_gradients(0.05, swapped ? two : one, 2);
    for (const Trial& t : with_gradients(0.1, swapped ? one : two, 1)) trials.push_back(t);
    EXPECT_EQ(choose(trials, kByGradients)[0].winner.rate(), 0.1) << swapped;
  }
}

// A text's accuracy is one of its tokens.
TEST(Choose, SharesThatAreOfNoWholeNumberOfExamplesStayAsTheyAre) {
  std::vector<Trial> trials = {trial(0.1, RunState::finished, 1), trial(0.2, RunState::finished, 1)};
  for (Trial& t : trials) t.validation_examples = 10;
  trials[0].validation_error = 0.125;
  trials[1].validation_error = 0.1125;
  const Choice choice = choose(trials, kByErrors)[0];
  EXPECT_EQ(choice.winner.rate(), 0.2);
  EXPECT_DOUBLE_EQ(choice.scores[1].validation_error, 0.1125);
}

TEST(Choose, MatchedLossGoesByValidationLossOfThoseThatReachedTheTarget) {
  // 0.1 never got there, 0.4 is there with fewer gradients than 0.2 but a worse validation loss, 0.8
  // overshot.
  std::vector<Trial> trials = {
      trial(0.1, RunState::target_not_reached, 0.1, 900, "B"), trial(0.2, RunState::finished, 1.0, 500, "B"),
      trial(0.4, RunState::finished, 1.1, 300, "B"), trial(0.8, RunState::finished, 0.9, 100, "B")};
  trials[3].overshot = true;
  const Choice choice = choose(trials)[0];
  EXPECT_EQ(choice.winner.rate(), 0.2);
  EXPECT_THAT(choice.order, ElementsAre(1, 2, 3, 0));
}

TEST(Choose, MatchedLossNeedsEverySeedAtTheTarget) {
  // 0.2 has the better mean but one of its two seeds ended above the target.
  EXPECT_EQ(
      winner({trial(0.1, RunState::finished, 1.5, 10, "B"), trial(0.1, RunState::finished, 1.5, 10, "B"),
              trial(0.2, RunState::finished, 1.0, 10, "B"),
              trial(0.2, RunState::target_not_reached, 1.0, 10, "B")}),
      0.1);
}

TEST(Choose, EqualValidationLossGoesByGradientsThenByTheSmallerRate) {
  EXPECT_EQ(
      winner({trial(0.1, RunState::finished, 1, 500, "B"), trial(0.2, RunState::finished, 1, 300, "B")}),
      0.2);
  EXPECT_EQ(
      winner({trial(0.2, RunState::finished, 1, 300, "B"), trial(0.1, RunState::finished, 1, 300, "B")}),
      0.1);
}

TEST(Choose, MatchedLossNeverReachedGoesByValidationLoss) {
  EXPECT_EQ(winner({trial(0.1, RunState::target_not_reached, 1.3, 900, "B"),
                    trial(0.2, RunState::target_not_reached, 1.2, 900, "B"),
                    trial(0.4, RunState::diverged, NAN, 10, "B")}),
            0.2);
}

TEST(Choose, WhereAllDivergeTakesTheSmallestAndSaysSo) {
  const auto choices = choose({trial(0.2, RunState::diverged, NAN), trial(0.1, RunState::failed, NAN)});
  EXPECT_EQ(choices[0].winner.rate(), 0.1);
  EXPECT_FALSE(choices[0].any_ended);
  EXPECT_EQ(choices[0].scores[0].failed + choices[0].scores[1].diverged, 2);
}

TEST(Choose, PromotesTheBestOfEachGroup) {
  const auto choices =
      choose({trial(0.1, RunState::finished, 3), trial(0.2, RunState::finished, 1),
              trial(0.4, RunState::finished, 2), trial(0.1, RunState::diverged, NAN, 0, "B", "h"),
              trial(0.2, RunState::target_not_reached, 5, 0, "B", "h"),
              trial(0.4, RunState::finished, 9, 0, "B", "h")});
  EXPECT_EQ(best_of(choices, 2), (Entrants{{"g", {200, 400}}, {"h", {400, 200}}}));
}

// By hand: differences to the winner's losses are 0.2, 0, 0.2, 0 for the second and 1, 1, 1, 2 for the third.
TEST(Sensitivity, ComparesExampleByExample) {
  const Choice choice = choose({with_losses(0.1, {1, 2, 3, 4}), with_losses(0.2, {1.2, 2, 3.2, 4}),
                                with_losses(0.4, {2, 3, 4, 6}), trial(0.8, RunState::diverged, NAN)})[0];
  // sd of 1, 2, 3, 4 is sqrt(5/3).
  EXPECT_NEAR(standard_error_of(choice.best().losses), std::sqrt(5.0 / 3) / 2,
              1e-12);  // float64 sums of four numbers
  const Sensitivity sensitivity = sensitivity_of(choice);
  EXPECT_EQ(sensitivity.status, LossComparison::paired);
  EXPECT_EQ(sensitivity.second, 200);
  const double error = std::sqrt(0.04 / 3) / 2;
  EXPECT_NEAR(sensitivity.to_second.value, 0.1, 1e-12);
  EXPECT_NEAR(sensitivity.to_second.standard_error, error, 1e-12);
  EXPECT_NEAR(sensitivity.distance, 0.1 / error, 1e-9);
  // 1.73 errors for the second; five for the third, 1.25 +- 0.25, which unpaired would be 1.2.
  ASSERT_TRUE(sensitivity.like_winner.has_value());
  EXPECT_THAT(*sensitivity.like_winner, ElementsAre(200));
  EXPECT_EQ(sensitivity.span.at(0), std::make_pair(0.1, 0.2));
}

TEST(Sensitivity, SaysWhyThereIsNoError) {
  const Sensitivity unrecorded =
      sensitivity_of(choose({trial(0.1, RunState::finished, 1), trial(0.2, RunState::finished, 2)})[0]);
  EXPECT_EQ(unrecorded.status, LossComparison::not_recorded);
  EXPECT_EQ(unrecorded.to_second.value, 1);
  EXPECT_TRUE(std::isnan(unrecorded.distance));
  EXPECT_FALSE(unrecorded.like_winner.has_value());
  EXPECT_TRUE(std::isnan(unrecorded.span.at(0).first));

  const Sensitivity lost =
      sensitivity_of(choose({with_losses(0.1, {1, 2}), trial(0.2, RunState::diverged, NAN)})[0]);
  EXPECT_EQ(lost.status, LossComparison::diverged);
  EXPECT_THAT(lost.like_winner, Optional(ElementsAre()));

  const Sensitivity same = sensitivity_of(choose({with_losses(0.1, {1, 2}), with_losses(0.2, {1, 2})})[0]);
  EXPECT_EQ(same.status, LossComparison::identical);
  EXPECT_THAT(same.like_winner, Optional(ElementsAre(200)));

  const Sensitivity unpaired =
      sensitivity_of(choose({with_losses(0.1, {1, 2}), with_losses(0.2, {1, 2, 4.5})})[0]);
  EXPECT_EQ(unpaired.status, LossComparison::unpaired);
  // Errors of 1, 2 and of 1, 2, 4.5: 1/2 and sd / sqrt(3) with variance 13/4.
  EXPECT_NEAR(unpaired.to_second.standard_error, std::sqrt(0.25 + 3.25 / 3), 1e-12);

  EXPECT_EQ(sensitivity_of(choose({with_losses(0.1, {1, 2})})[0]).status, LossComparison::alone);
}

TEST(Sensitivity, CountsNoneThatTheRuleTellsApart) {
  // 0.2 has the same losses but didn't reach the target.
  Trial reached = with_losses(0.1, {1, 2}), missed = with_losses(0.2, {1, 2.1});
  reached.protocol = missed.protocol = "B";
  missed.status = RunState::target_not_reached;
  EXPECT_THAT(sensitivity_of(choose({reached, missed})[0]).like_winner, Optional(ElementsAre()));
  missed.status = RunState::finished;
  EXPECT_THAT(sensitivity_of(choose({reached, missed})[0]).like_winner, Optional(ElementsAre(200)));
}

TEST(SelectionFile, KeepsGroupsApartAndIsReadAsWinners) {
  const auto choices = choose({trial(0.1, RunState::finished, 1, 0, "A-epochs", "lamb"),
                               trial(0.2, RunState::finished, 2, 0, "A-epochs", "lamb"),
                               trial(0.1, RunState::finished, 2, 0, "A-epochs", "sgd"),
                               trial(0.2, RunState::diverged, NAN, 0, "A-epochs", "sgd")});
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(winners_of(choices),
            (Winners{{"lamb", {{"learning_rate", 0.1}}}, {"sgd", {{"learning_rate", 0.1}}}}));
  const std::string text = selection_toml(choices, Study{});
  EXPECT_THAT(text, HasSubstr("group = \"lamb\""));
  EXPECT_THAT(text, HasSubstr("learning_rate = 0.1\n"));
  const testing::TemporaryFolder folder;
  write_file_atomically(folder / "selection.toml", text);
  const std::vector<Rule> winners = read_selection(folder / "selection.toml");
  ASSERT_EQ(winners.size(), 2u);
  EXPECT_EQ(winners[1].when.at(0).values, std::vector<OptionValue>{std::string("sgd")});
  EXPECT_EQ(winners[1].set.at(0).value, OptionValue(0.1));
}

}  // namespace
}  // namespace basin
