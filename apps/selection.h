// defines: RateTrial, RateChoice and choose_rates(): the learning rate of each group from its tuning runs.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "apps/study.h"

namespace basin {

/// What one tuning run came to.
struct RateTrial {
  std::string group, run_id, protocol, status;
  double rate = 0;
  int64_t seed = 0;
  double validation_loss = std::numeric_limits<double>::infinity();  // infinite where the run diverged or failed
  double gradients = 0;                                              // image gradients computed
  bool overshot = false;
};

/// Means over the selection seeds. `gradients` is infinite unless every seed reached the target (protocol B).
struct RateScore {
  double rate = 0;
  int64_t seeds = 0, ended = 0, reached = 0, overshot = 0;
  double validation_loss = 0, gradients = 0;
};

struct RateChoice {
  std::string group, protocol;
  double rate = 0;
  bool at_edge = false;   // the first or last of its list: a better one may lie outside
  bool any_ended = true;  // false: every rate diverged or failed, and the smallest was taken
  std::vector<RateScore> scores;  // by rising rate
};

/// The rate with the least mean final validation loss. Protocol B first takes the rates with which every seed reached the
/// target, and among those clean ends before overshot ones; where no rate got there with every seed, validation loss alone
/// decides. Equal losses: the fewest image gradients (protocol B), then the smaller rate. In the order of first appearance of
/// the groups.
std::vector<RateChoice> choose_rates(const std::vector<RateTrial>& trials);

/// From the run's status.json and run.h5; an unreadable or failed run is a trial with status failed.
RateTrial read_trial(const Cell& cell, const std::string& run_folder);

ChosenRates chosen_rates(const std::vector<RateChoice>& choices);
/// What OUT/selection.toml holds: how it was chosen, and every score.
std::string selection_toml(const std::vector<RateChoice>& choices, const Study& study);

}  // namespace basin
