// Which options tell settings apart, and where their names appear.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/arms.h"
#include "tests/study/study_text.h"

namespace basin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::study_of;

Settings setting(const std::string& optimizer, int64_t batch, Settings more) {
  Settings all = {{"optimizer", optimizer}, {"batch_size", batch}, {"protocol", std::string("B")}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Arms, AreWhatTellsSettingsOfOneBatchSizeAndOptimiserApart) {
  const auto with = [](int64_t ghost, double rho) {
    return setting("sgd", 5000, {{"ghost_batch", ghost}, {"perturbation.rho", rho}});
  };
  EXPECT_THAT(distinguishing_keys({with(0, 0.05), with(25, 0.05)}), ElementsAre("ghost_batch"));
  EXPECT_THAT(distinguishing_keys({with(0, 0.05), with(25, 0.05), with(25, 0.1)}),
              ElementsAre("ghost_batch", "perturbation.rho"));
  EXPECT_THAT(distinguishing_keys({with(0, 0.05), with(0, 0.05)}), IsEmpty());
  EXPECT_THAT(distinguishing_keys({}), IsEmpty());
}

TEST(Arms, WhatFollowsFromOptimiserBatchSizeAndProtocolIsNone) {
  EXPECT_THAT(
      distinguishing_keys({setting("sgd", 32, {{"warmup", 0.0}}), setting("sgd", 64, {{"warmup", 0.2}}),
                           setting("lamb", 64, {{"lamb.beta2", 0.9}})}),
      IsEmpty());
}

TEST(Arms, WhatFollowsFromAnotherIsLeftOutAndTheStudysAxesComeFirst) {
  const auto with = [](double horizon, int64_t ghost) {
    return setting("sgd", 5000, {{"horizon", horizon}, {"ghost_batch", ghost}});
  };
  const std::vector<Settings> settings = {with(1, 0), with(2, 25)};
  EXPECT_THAT(distinguishing_keys(settings), ElementsAre("horizon"));
  EXPECT_THAT(distinguishing_keys(settings, {"seed", "ghost_batch"}), ElementsAre("ghost_batch"));
}

TEST(Arms, AnAbsentOptionIsAValueOfItsOwn) {
  const std::vector<Settings> settings = {setting("sgd", 32, {}), setting("sgd", 32, {{"warmup", 0.2}})};
  EXPECT_THAT(distinguishing_keys(settings), ElementsAre("warmup"));
  EXPECT_EQ(arm_text(settings[0], "warmup"), "–");
  EXPECT_EQ(arm_text(settings[1], "warmup"), "0.2");
  EXPECT_EQ(plain_text(std::string("sam")), "sam");
}

TEST(Arms, WhatARuleMakesOfAnAxisIsNotNamedTwice) {
  const std::vector<Cell> cells =
      expand(study_of("[sweep]\nbatch_size = [32, 64]\nregime_batch = [0, 32]\n"
                      "[[sweep.set]]\nwhen = { regime_batch = 32 }\nset = { warmup = 0.2 }\n"
                      "[[sweep.set]]\nwhen = { batch_size = 64 }\nset = { power = 2.0 }\n"));
  // warmup follows from the axis regime_batch, power from the batch size.
  EXPECT_EQ(cells[1].label, "sgd B=32 protocol A-epochs regime_batch=32 seed 1");
  EXPECT_EQ(cells[1].arms, (Settings{{"regime_batch", int64_t{32}}}));
}

TEST(Arms, ARuleOfTheSeedIsNamed) {
  const std::vector<Cell> cells = expand(
      study_of("[sweep]\nseed = [1, 2]\n[[sweep.set]]\nwhen = { seed = 2 }\nset = { warmup = 0.2 }\n"));
  EXPECT_EQ(cells[0].label, "sgd B=256 protocol A-epochs warmup=0.05 seed 1");
  EXPECT_EQ(cells[1].label, "sgd B=256 protocol A-epochs warmup=0.2 seed 2");
}

TEST(Arms, AreNoneOfARateAlone) {
  const std::vector<Cell> cells = expand(study_of("[sweep]\nlearning_rate = [0.1, 0.2]\n"));
  EXPECT_THAT(cells[0].arms, IsEmpty());
  EXPECT_THAT(cells[0].label, HasSubstr(" rate 0.1 "));
}

TEST(Arms, OptionsOfAnotherOptimiserAreNone) {
  const std::vector<Cell> cells =
      expand(study_of("[sweep]\noptimizer = ['sgd', 'lamb']\n[[sweep.set]]\nwhen = { optimizer = 'lamb' }\n"
                      "set = { lamb.beta2 = 0.99 }\n"));
  EXPECT_THAT(cells[0].arms, IsEmpty());
  EXPECT_THAT(cells[1].label, Not(HasSubstr("beta2")));
}

}  // namespace
}  // namespace basin
