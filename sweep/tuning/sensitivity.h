// defines: Sensitivity, how much the choice of a winner rests on the examples that it was chosen by.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sweep/tuning/selection.h"

namespace basin {

/// How two mean validation losses, or shares of errors, were compared, and so what the error of their difference is.
///   paired    both have the losses of the same n examples: sd(l_other,i - l_winner,i) / sqrt(n)
///   unpaired  not the same number of examples: the root of the sum of both squared errors, as if independent
///             (too large, since the examples are mostly the same)
///   identical the same loss on every example: two trials that were rounded to the same values
///   by_gradients   no error: the loss did not choose
///   diverged, not_recorded   no error: one has no loss, or its runs have not recorded the examples' losses
///   alone     there is no second
enum class LossComparison { paired, unpaired, identical, diverged, not_recorded, by_gradients, alone };
const char* to_string(LossComparison comparison);

/// A difference of two means over the validation examples, other - winner, with its standard error from the
/// examples: of losses in nat, or of errors as a share.
struct LossDifference {
  double value = NAN, standard_error = NAN;
  LossComparison status = LossComparison::not_recorded;
};
LossDifference difference_to(const Score& winner, const Score& other, const std::string& select = kByLoss);

/// How sure the winner of a group is, among those that were tried to the end of the budget. A winner by gradients has a second and no
/// more: one number by seed, whose spread a tuning's one or two seeds don't show.
struct Sensitivity {
  LossComparison status = LossComparison::alone;  // of the difference to the second
  std::optional<int64_t> second;                  // trial that would have won without the winner
  LossDifference to_second;
  double distance =
      NAN;  // the difference in units of its error; below 0 where protocol B put a greater loss first
  /// Candidates that can't be distinguished from the winner: nothing comes before the loss (or errors) in the choice, and
  /// it is at most 1.96 errors greater. Each is looked at by itself, and the winner had the luck of the least of
  /// several. Nothing where the winner's loss has no error.
  std::optional<std::vector<int64_t>> like_winner;  // trials
  std::vector<std::pair<double, double>>
      span;  // by key of the winner: least and greatest among them and the winner, or NaN
};
Sensitivity sensitivity_of(const Choice& choice);

}  // namespace basin
