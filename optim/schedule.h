// defines: learning-rate schedules and scaling rules, pure functions of update and batch size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/options.h"

namespace basin {

struct ScheduleOptions {
  std::string schedule = "cosine";     // constant | cosine | polynomial | step
  double warmup = 0.05;                // share of all updates, linear from 0
  double power = 2.0;                  // polynomial: (1 - t/T)^power; 2 is the LARS paper's
  double final_factor = 0.0;           // cosine and polynomial end at this share of the peak
  std::vector<double> milestones;      // step: shares of all updates
  double step_factor = 0.1;            // step: factor at each milestone
  std::string scaling_rule = "none";   // none | linear | sqrt
  int64_t base_batch = 256;            // the batch size at which learning_rate holds
};
void bind_options(OptionTable& table, ScheduleOptions& options);

/// learning_rate times the rule's factor: 1, B/base, sqrt(B/base).
double scaled_learning_rate(const ScheduleOptions& options, double learning_rate, int64_t batch_size);

/// Factor on the peak learning rate at update t = 0 .. total-1. Warm-up reaches 1 at its last update; the decay runs from
/// there to the end, so that no update has rate 0 (t/T is taken at the middle of the convention: see the .cpp).
double schedule_factor(const ScheduleOptions& options, int64_t update, int64_t total_updates);

}  // namespace basin
