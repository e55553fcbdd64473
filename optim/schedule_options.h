// defines: ScheduleOptions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace basin {

/// What a study says about the learning rate of every update (optim/schedule.h) and of its scaling (optim/scaling_rule.h).
struct ScheduleOptions {
  std::string schedule = "cosine";      // constant | cosine | polynomial | step
  std::string schedule_unit = "share";  // share | epochs | updates: of warmup, horizon and milestones
  double warmup = 0.05;                 // linear; where it ends
  std::string warmup_rule = "none";     // none | linear: warmup B/base_batch
  std::string warmup_from = "zero";     // zero (which no update has) | base: the rate at base_batch
  double power = 2.0;                   // polynomial: (1 - t/T)^power; 2 is the LARS paper's
  double final_factor = 0.0;            // cosine and polynomial end at this share of the peak
  double horizon = 0;                   // ... here; 0: with the run
  std::vector<double> milestones;       // step: where the rate falls
  double step_factor = 0.1;             // step: factor at each milestone
  std::string scaling_rule = "none";    // none | linear | sqrt | power | malladi, or a published table
  double scaling_power = 0.75;          // power: learning_rate (B/base_batch)^scaling_power
  std::string beta2_rule = "none";      // none | half_life: beta2^(B/base_batch)
  std::string decay_rule = "none";      // none | linear: weight_decay B/base_batch
  int64_t base_batch = 256;             // the batch size at which learning_rate holds
  bool effective_rate = false;          // learning_rate is the effective one
};

}  // namespace basin
