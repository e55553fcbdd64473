#include "optim/schedule.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace basin {
namespace {

ScheduleOptions make(const std::string& schedule, double warmup = 0) {
  ScheduleOptions options;
  options.schedule = schedule;
  options.warmup = warmup;
  return options;
}

const std::vector<std::string> schedules{"constant", "cosine", "polynomial", "step"};

TEST(Schedule, NoUpdateHasRateZeroAndTheFirstAfterWarmUpHasThePeak) {
  for (const std::string& name : schedules) {
    for (double warmup : {0.0, 0.05, 0.3, 1.0}) {
      for (int64_t total : {1, 2, 3, 7, 100}) {
        const ScheduleOptions options = make(name, warmup);
        double largest = 0;
        for (int64_t t = 0; t < total; ++t) {
          const double factor = schedule_factor(options, t, total);
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
      EXPECT_DOUBLE_EQ(schedule_factor(options, t, 100), static_cast<double>(t + 1) / 10);
    }
    EXPECT_DOUBLE_EQ(schedule_factor(options, 10, 100), 1);
  }
  // round(0.05 * 9) = 0 updates, round(0.05 * 10) = 1, whose factor is 1.
  EXPECT_DOUBLE_EQ(schedule_factor(make("constant", 0.05), 0, 9), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(make("constant", 0.05), 0, 10), 1);
}

TEST(Schedule, ClosedForms) {
  // Cosine: 1, at half-way 1/2, and symmetric about it.
  const ScheduleOptions cosine = make("cosine");
  EXPECT_DOUBLE_EQ(schedule_factor(cosine, 0, 8), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(cosine, 4, 8), 0.5);
  EXPECT_NEAR(schedule_factor(cosine, 2, 8), 0.5 + std::sqrt(0.5) / 2, 1e-15);
  EXPECT_NEAR(schedule_factor(cosine, 3, 8) + schedule_factor(cosine, 5, 8), 1, 1e-15);
  // The LARS paper's (1 - t/T)^2.
  const ScheduleOptions polynomial = make("polynomial");
  for (int64_t t = 0; t < 5; ++t) {
    EXPECT_NEAR(schedule_factor(polynomial, t, 5),
                (5.0 - static_cast<double>(t)) * (5.0 - static_cast<double>(t)) / 25, 1e-15);
  }
  ScheduleOptions floor = make("polynomial", 0.2);
  floor.power = 1;
  floor.final_factor = 0.5;
  EXPECT_DOUBLE_EQ(schedule_factor(floor, 6, 10),
                   0.5 + 0.5 * 0.5);  // half-way through the 8 updates after warm-up
  floor.schedule = "cosine";
  EXPECT_DOUBLE_EQ(schedule_factor(floor, 6, 10), 0.75);
}

TEST(Schedule, StepsFallAtTheirMilestones) {
  ScheduleOptions options = make("step");
  options.milestones = {0.5, 0.75};
  options.step_factor = 0.1;
  EXPECT_DOUBLE_EQ(schedule_factor(options, 49, 100), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(options, 50, 100), 0.1);
  EXPECT_DOUBLE_EQ(schedule_factor(options, 74, 100), 0.1);
  EXPECT_NEAR(schedule_factor(options, 75, 100), 0.01, 1e-17);
}

TEST(ScalingRule, GrowsFromTheBaseBatch) {
  ScheduleOptions options;
  options.base_batch = 256;
  for (const auto& [rule, expected] :
       {std::pair<std::string, double>{"none", 0.2}, {"linear", 3.2}, {"sqrt", 0.8}}) {
    options.scaling_rule = rule;
    EXPECT_DOUBLE_EQ(scaled_learning_rate(options, 0.2, 4096), expected) << rule;
    EXPECT_DOUBLE_EQ(scaled_learning_rate(options, 0.2, 256), 0.2) << rule;
  }
  options.scaling_rule = "sqrt";
  EXPECT_DOUBLE_EQ(scaled_learning_rate(options, 0.2, 64), 0.1);
}

TEST(Schedule, BadOptionsAreNamed) {
  ScheduleOptions options;
  OptionTable table;
  bind_options(table, options);
  EXPECT_THROW(table.set_from_text("warmup=1.5", "test"), ConfigError);
  EXPECT_THROW(table.set_from_text("schedule=exponential", "test"), ConfigError);
  EXPECT_THROW(table.set_from_text("base_batch=0", "test"), ConfigError);
  EXPECT_THROW(table.set_from_text("milestones=[0.5, 2.0]", "test"), ConfigError);
  options.schedule = "exponential";
  options.scaling_rule = "cubic";
  EXPECT_THROW(schedule_factor(options, 50, 100), ConfigError);
  EXPECT_THROW(scaled_learning_rate(options, 0.1, 256), ConfigError);
  EXPECT_THROW(schedule_factor(make("constant"), 5, 5), c10::Error);
}

}  // namespace
}  // namespace basin
