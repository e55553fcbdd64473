#include "optim/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace basin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ScheduleOptions make(const std::string& schedule, double warmup = 0) {
  ScheduleOptions options;
  options.schedule = schedule;
  options.warmup = warmup;
  return options;
}

/// The schedule of learning_rate = 1 over `total` updates, 10 per epoch.
RateSchedule over(const ScheduleOptions& options, int64_t total, int64_t batch_size = 256) {
  return {options, 1, 1, {batch_size, total, 10}};
}

double factor(const ScheduleOptions& options, int64_t update, int64_t total) {
  return over(options, total).factor(update);
}

const std::vector<std::string> schedules{"constant", "cosine", "polynomial", "step"};

TEST(Schedule, NoUpdateHasRateZeroAndTheFirstAfterWarmUpHasThePeak) {
  for (const std::string& name : schedules) {
    for (double warmup : {0.0, 0.05, 0.3, 1.0}) {
      for (int64_t total : {1, 2, 3, 7, 100}) {
        const RateSchedule rates = over(make(name, warmup), total);
        double largest = 0;
        for (int64_t t = 0; t < total; ++t) {
          const double factor = rates.factor(t);
          EXPECT_GT(factor, 0) << name << " " << t << "/" << total;
          EXPECT_LE(factor, 1);
          largest = std::max(largest, factor);
        }
        EXPECT_EQ(largest, 1) << name << " " << total;
      }
    }
  }
}

TEST(Schedule, WarmUpIsLinearAndReachesOneAtItsLastUpdate) {
  for (const std::string& name : schedules) {
    const ScheduleOptions options = make(name, 0.1);
    for (int64_t t = 0; t < 10; ++t) {
      EXPECT_DOUBLE_EQ(factor(options, t, 100), static_cast<double>(t + 1) / 10);
    }
    EXPECT_DOUBLE_EQ(factor(options, 10, 100), 1);
  }
  // round(0.05 * 9) = 0 updates, round(0.05 * 10) = 1, whose factor is 1.
  EXPECT_EQ(over(make("constant", 0.05), 9).warmup_updates(), 0);
  EXPECT_EQ(over(make("constant", 0.05), 10).warmup_updates(), 1);
  EXPECT_DOUBLE_EQ(factor(make("constant", 0.05), 0, 10), 1);
}

TEST(Schedule, ClosedForms) {
  // Cosine: 1, at half-way 1/2, and symmetric about it.
  const ScheduleOptions cosine = make("cosine");
  EXPECT_DOUBLE_EQ(factor(cosine, 0, 8), 1);
  EXPECT_DOUBLE_EQ(factor(cosine, 4, 8), 0.5);
  EXPECT_NEAR(factor(cosine, 2, 8), 0.5 + std::sqrt(0.5) / 2, 1e-15);
  EXPECT_NEAR(factor(cosine, 3, 8) + factor(cosine, 5, 8), 1, 1e-15);
  // The LARS paper's (1 - t/T)^2.
  const ScheduleOptions polynomial = make("polynomial");
  for (int64_t t = 0; t < 5; ++t) {
    EXPECT_NEAR(factor(polynomial, t, 5),
                (5.0 - static_cast<double>(t)) * (5.0 - static_cast<double>(t)) / 25, 1e-15);
  }
  ScheduleOptions floor = make("polynomial", 0.2);
  floor.power = 1;
  floor.final_factor = 0.5;
  EXPECT_DOUBLE_EQ(factor(floor, 6, 10), 0.5 + 0.5 * 0.5);  // half-way through the 8 updates after warm-up
  floor.schedule = "cosine";
  EXPECT_DOUBLE_EQ(factor(floor, 6, 10), 0.75);
}

TEST(Schedule, StepsFallAtTheirMilestones) {
  ScheduleOptions options = make("step");
  options.milestones = {0.5, 0.75};
  options.step_factor = 0.1;
  EXPECT_DOUBLE_EQ(factor(options, 49, 100), 1);
  EXPECT_DOUBLE_EQ(factor(options, 50, 100), 0.1);
  EXPECT_DOUBLE_EQ(factor(options, 74, 100), 0.1);
  EXPECT_NEAR(factor(options, 75, 100), 0.01, 1e-17);
}

TEST(Schedule, TheSameCourseInThreeUnits) {
  // 100 updates, 10 per epoch: 20 of warm-up, the end at 80 and at 1/4 of the peak.
  ScheduleOptions shares = make("polynomial", 0.2);
  shares.horizon = 0.8;
  shares.final_factor = 0.25;
  ScheduleOptions epochs = shares, updates = shares;
  epochs.schedule_unit = "epochs";
  epochs.warmup = 2;
  epochs.horizon = 8;
  updates.schedule_unit = "updates";
  updates.warmup = 20;
  updates.horizon = 80;
  for (int64_t t = 0; t < 100; ++t) {
    const double by_hand =
        t < 20   ? static_cast<double>(t + 1) / 20
        : t < 80 ? 0.25 + 0.75 * static_cast<double>(80 - t) * static_cast<double>(80 - t) / 3600
                 : 0.25;
    for (const ScheduleOptions& options : {shares, epochs, updates})
      EXPECT_NEAR(factor(options, t, 100), by_hand, 1e-15) << options.schedule_unit << " " << t;
  }
  ScheduleOptions falling = make("step");
  falling.schedule_unit = "epochs";
  falling.milestones = {3.04, 6};  // 30.4 and 60 updates
  EXPECT_EQ(factor(falling, 29, 100), 1);
  EXPECT_EQ(factor(falling, 30, 100), 0.1);
  EXPECT_EQ(factor(falling, 59, 100), 0.1);
  EXPECT_NEAR(factor(falling, 60, 100), 0.01, 1e-17);
}

TEST(Schedule, AHorizonBeyondTheRunIsNeverReached) {
  ScheduleOptions options = make("cosine", 20);
  options.schedule_unit = "updates";
  options.horizon = 220;
  EXPECT_EQ(factor(options, 20, 100), 1);
  EXPECT_NEAR(factor(options, 70, 100), 0.5 + std::sqrt(0.5) / 2,
              1e-15);  // a quarter of the 200 after the warm-up
  EXPECT_NEAR(factor(options, 99, 100), (1 + std::cos(0.395 * M_PI)) / 2, 1e-15);
}

TEST(Schedule, ARunMayEndWithinItsWarmUp) {
  ScheduleOptions options = make("cosine", 400);
  options.schedule_unit = "updates";
  EXPECT_DOUBLE_EQ(factor(options, 99, 100), 0.25);
  options.warmup = 1e300;
  EXPECT_GT(factor(options, 99, 100), 0);
  EXPECT_LT(factor(options, 99, 100), 1e-13);
}

TEST(Schedule, TheWarmUpMayGrowWithTheBatch) {
  ScheduleOptions options = make("constant", 0.5);
  options.schedule_unit = "epochs";
  options.warmup_rule = "linear";
  EXPECT_EQ(over(options, 100, 256).warmup_updates(), 5);
  EXPECT_EQ(over(options, 100, 1024).warmup_updates(), 20);
}

TEST(Schedule, TheWarmUpMayStartFromTheRateAtTheBaseBatch) {
  ScheduleOptions options = make("constant", 0.1);
  options.warmup_from = "base";
  options.scaling_rule = "linear";
  const RateSchedule larger(options, 0.2, 1, {1024, 100, 10}), same(options, 0.2, 1, {256, 100, 10}),
      smaller(options, 0.2, 1, {64, 100, 10});
  EXPECT_DOUBLE_EQ(larger.at(0), 0.2 + 0.6 / 10);
  EXPECT_DOUBLE_EQ(larger.at(4), 0.2 + 0.6 / 2);
  EXPECT_DOUBLE_EQ(larger.at(9), 0.8);
  EXPECT_DOUBLE_EQ(same.at(0), 0.2);
  EXPECT_DOUBLE_EQ(smaller.at(0), 0.05);  // the peak, and not down to it
}

TEST(Schedule, AnEffectiveRateIsDividedByTheGain) {
  ScheduleOptions options = make("constant");
  EXPECT_EQ(RateSchedule(options, 0.5, 10, {256, 3, 1}).at(1), 0.5);
  options.effective_rate = true;
  EXPECT_DOUBLE_EQ(RateSchedule(options, 0.5, 10, {256, 3, 1}).at(1), 0.05);
}

TEST(Schedule, BadOptionsAreNamed) {
  ScheduleOptions options;
  OptionTable table;
  bind_options(table, options);
  EXPECT_THROW(table.set_from_text("warmup=-1", "test"), ConfigError);
  EXPECT_THROW(table.set_from_text("schedule=exponential", "test"), ConfigError);
  EXPECT_THROW(table.set_from_text("schedule_unit=days", "test"), ConfigError);
  EXPECT_THROW(table.set_from_text("base_batch=0", "test"), ConfigError);
  EXPECT_THROW(table.set_from_text("milestones=[0.5, -1.0]", "test"), ConfigError);
  options.schedule = "exponential";
  EXPECT_THROW(factor(options, 50, 100), ConfigError);
  EXPECT_THROW(factor(make("constant"), 5, 5), c10::Error);
}

std::string refusal(const ScheduleOptions& options, int64_t total) {
  try {
    over(options, total);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(Schedule, PositionsThatContradictEachOtherAreRefused) {
  EXPECT_THAT(refusal(make("constant", 1.5), 10),
              AllOf(HasSubstr("warmup = 1.5"), HasSubstr("schedule_unit")));
  ScheduleOptions falling = make("step");
  falling.milestones = {0.5, 81};
  EXPECT_THAT(refusal(falling, 10), AllOf(HasSubstr("milestones = 81"), HasSubstr("schedule_unit")));

  ScheduleOptions options = make("cosine", 0.5);
  options.horizon = 0.5;
  EXPECT_THAT(refusal(options, 10), AllOf(HasSubstr("horizon = 0.5"), HasSubstr("warm-up")));
  options.horizon = 0.9;  // the last of ten updates would have none
  EXPECT_THAT(refusal(options, 10), AllOf(HasSubstr("horizon = 0.9"), HasSubstr("final_factor = 0")));
  options.horizon = 0.91;
  EXPECT_EQ(refusal(options, 10), "none");
  options.horizon = 0.6;
  options.final_factor = 0.1;
  EXPECT_EQ(refusal(options, 10), "none");
  options.schedule = "constant";  // has no end to reach
  options.horizon = 0.1;
  EXPECT_EQ(refusal(options, 10), "none");
}

TEST(Schedule, WhatRoundsBeyondAHorizonHasTheFinalFactor) {
  ScheduleOptions options = make("polynomial", 10.6);
  options.schedule_unit = "updates";
  options.horizon = 10.7;  // within the eleven updates that the warm-up is rounded to
  options.final_factor = 0.5;
  EXPECT_EQ(factor(options, 10, 20), 1);
  EXPECT_EQ(factor(options, 11, 20), 0.5);
  EXPECT_EQ(factor(options, 19, 20), 0.5);
}

}  // namespace
}  // namespace basin
