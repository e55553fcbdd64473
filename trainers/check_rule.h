// defines: CheckRule, when the full training loss is looked at and what follows from it.
#pragma once

#include <cstdint>
#include <vector>

#include "trainers/train_options.h"

namespace basin {

/// Protocol B stops at the first check of the full training loss (eval mode) at or below target_loss; loss levels keep a
/// checkpoint at the first check at or below each. Checks come every check_every image gradients, four times as often once
/// a check saw less than 1.15 x target: a loss that falls by a few per cent between checks then ends within a few per
/// cent of the target. A check costs one forward pass over the training set: time, but no gradients.
class CheckRule {
 public:
  static constexpr double kNear = 1.15;          // x target: denser from here
  static constexpr int64_t kDenser = 4;
  static constexpr double kOvershot = 0.8;       // x target: stopped too far below to be compared

  explicit CheckRule(const TrainOptions& options);

  /// Protocol B, or any protocol with loss levels.
  bool active() const { return matched_loss_ || !levels_.empty(); }
  bool reached(double train_loss) const { return matched_loss_ && train_loss <= target_; }
  bool overshot(double train_loss) const { return matched_loss_ && train_loss < kOvershot * target_; }
  bool matched_loss() const { return matched_loss_; }
  /// In image gradients: when to check next after one at `gradients` that saw `train_loss` (NaN: none yet).
  int64_t next_check(int64_t gradients, double train_loss) const;
  /// From high to low.
  const std::vector<double>& levels() const { return levels_; }

 private:
  bool matched_loss_;
  double target_;
  int64_t interval_;
  std::vector<double> levels_;
};

}  // namespace basin
