// defines: CheckRule, which decides when the full training loss is checked and what follows from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainers/train_options.h"

namespace basin {

/// Protocol B stops at the first check of the full training loss (eval mode) at or below target_loss; loss levels keep a
/// checkpoint at the first check at or below each. A check comes after the first update that is check_every examples of the
/// stream or more past the last one, duplicates counted, so that a run stops at the same update whether they are merged or
/// not. From the first check that saw less than 1.15 x target on they come four times as often, whatever later ones see: a
/// loss that falls by a few per cent between checks then ends within a few per cent of the target. A check costs one
/// forward pass over the training set, two under batch normalisation, whose statistics are re-estimated first: time, but no
/// gradients. At a fixed budget there are none once every level was passed.
class CheckRule {
 public:
  static constexpr double kNear = 1.15;  // x target: denser from here
  static constexpr int64_t kDenser = 4;
  static constexpr double kOvershot = 0.8;  // x target or level: too far below it to be compared

  /// ConfigError where two different loss levels have one label.
  explicit CheckRule(const TrainOptions& options);

  /// Whether anything can follow from a check: under protocol B, and elsewhere while levels are left to pass.
  bool pending(int64_t levels_passed) const {
    return matched_loss_ || levels_passed < static_cast<int64_t>(levels_.size());
  }
  bool reached(double train_loss) const { return matched_loss_ && train_loss <= target_; }
  bool overshot(double train_loss) const { return matched_loss_ && train_loss < kOvershot * target_; }
  bool matched_loss() const { return matched_loss_; }
  /// Whether checks are to be denser from here on.
  bool near_target(double train_loss) const { return matched_loss_ && train_loss < kNear * target_; }
  /// In examples: when to check next after a check at `examples`; `denser` once one was near the target.
  int64_t next_check(int64_t examples, bool denser) const;
  /// From high to low.
  const std::vector<double>& levels() const { return levels_; }
  /// A loss too far below the level for its checkpoint to stand for it.
  static bool overshot_level(double train_loss, double level) { return train_loss < kOvershot * level; }
  /// "loss-1.5": of the checkpoint that is kept for a level.
  static std::string level_label(double level);

 private:
  bool matched_loss_;
  double target_;
  int64_t interval_;
  std::vector<double> levels_;
};

}  // namespace basin
