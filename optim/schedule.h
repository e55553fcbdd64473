// defines: learning-rate schedules and scaling rules, pure functions of update and batch size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/options.h"

namespace basin {

struct ScheduleOptions {
  std::string schedule = "cosine";    // constant | cosine | polynomial | step
  double warmup = 0.05;               // share of all updates, linear from 0 (which no update has)
  double power = 2.0;                 // polynomial: (1 - t/T)^power; 2 is the LARS paper's
  double final_factor = 0.0;          // cosine and polynomial end at this share of the peak
  std::vector<double> milestones;     // step: shares of all updates
  double step_factor = 0.1;           // step: factor at each milestone
  std::string scaling_rule = "none";  // none | linear | sqrt
  int64_t base_batch = 256;           // the batch size at which learning_rate holds
};
void bind_options(OptionTable& table, ScheduleOptions& options);

/// learning_rate times the rule's factor: 1, B/base, sqrt(B/base).
double scaled_learning_rate(const ScheduleOptions& options, double learning_rate, int64_t batch_size);

/// Factor on the peak learning rate at update t = 0 .. T-1, T = total_updates.
///
/// With w = round(warmup T) warm-up updates:   t < w: (t+1)/w, so the first is 1/w and the last 1.
/// After them, with s = (t-w)/(T-w) in [0, 1):  constant 1;  cosine f + (1-f)(1 + cos(pi s))/2;
/// polynomial f + (1-f)(1-s)^power, without warm-up the LARS paper's (1-t/T)^2;  f = final_factor, which
/// update T would have: no update has rate 0, and T = 1 gives 1.  step: step_factor to the number of
/// milestones m with round(m T) <= t.
double schedule_factor(const ScheduleOptions& options, int64_t update, int64_t total_updates);

}  // namespace basin
