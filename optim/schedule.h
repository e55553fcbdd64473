// defines: RateSchedule, the learning rate of every update.
#pragma once

#include <cstdint>

#include "core/options.h"
#include "optim/schedule_options.h"

namespace basin {

void bind_options(OptionTable& table, ScheduleOptions& options);

/// ConfigError for what can't be seen from one option: shares above 1, a horizon within the warm-up, a
/// published table (optim/scaling_rule.h) together with a rate or a warm-up of the study's own.
void check_schedule(const ScheduleOptions& options, double learning_rate, int64_t batch_size);

/// What a schedule is laid over.
struct RunShape {
  int64_t batch_size = 1;  // the first
  int64_t updates = 1;     // T
  double updates_an_epoch = 1;
};

/// rate(t) = peak factor(t) at update t = 0 .. T-1, with
///   peak = learning_rate rule(B),  over the optimiser's gain() where effective_rate says so.
///
/// Positions are given in shares of T, in epochs or in updates. With w warm-up updates (rounded), the horizon
/// H (not rounded; T unless given) and a = 0, or 1/rule(B), at most 1, with warmup_from = "base":
///   t < w: a + (1-a)(t+1)/w, so the last is 1. A run that ends within its warm-up never has the peak.
/// After it, with s = min(1, (t-w)/(H-w)):  constant 1;  cosine f + (1-f)(1 + cos(pi s))/2;
///   polynomial f + (1-f)(1-s)^power, without warm-up the LARS paper's (1-t/T)^2;  f = final_factor, which
///   update H would have. step: step_factor to the number of milestones (rounded to updates) at or before t.
/// T = 1 gives 1. No update has rate 0: a horizon before the last update with f = 0 is a ConfigError.
class RateSchedule {
 public:
  RateSchedule(const ScheduleOptions& options, double learning_rate, double gain, const RunShape& shape);

  double peak() const { return peak_; }
  int64_t warmup_updates() const { return warmup_; }
  double factor(int64_t update) const;
  double at(int64_t update) const { return peak_ * factor(update); }

 private:
  double decay(int64_t update) const;
  ScheduleOptions options_;
  int64_t updates_, warmup_;
  double peak_, start_, horizon_;
  std::vector<int64_t> milestones_;
};

}  // namespace basin
