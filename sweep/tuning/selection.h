// defines: Trial, Score and Choice: what tuning runs came to, and which candidate of a group won.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "io/run_state.h"
#include "study/study.h"

namespace basin {

/// What one tuning run came to.
struct Trial {
  std::string group, run_id, protocol;
  RunState status = RunState::queued;
  Settings when;
  Candidate candidate;
  size_t rung = 0;
  int64_t seed = 0;
  double validation_loss =
      std::numeric_limits<double>::infinity();  // infinite where the run diverged or failed
  double validation_error = std::numeric_limits<double>::infinity();  // share of the examples, likewise
  int64_t validation_examples = 0;                                    // that it is a share of; 0: not known
  double gradients = 0;                                               // image gradients computed
  bool overshot = false;
  std::vector<double> losses, errors;  // by validation example, errors 0 or 1; empty where the run has not
                                       // recorded them

  bool ended() const { return status == RunState::finished || status == RunState::target_not_reached; }
};

/// Means over the seeds of a candidate's tuning runs, of errors and gradients from whole numbers: equal ones are equal to the
/// bit. `gradients` is infinite unless every seed reached the
/// target (protocol B), `validation_loss` and `validation_error` unless every seed came to an end.
struct Score {
  Candidate candidate;
  int64_t seeds = 0, ended = 0, reached = 0, overshot = 0, diverged = 0, failed = 0;
  double validation_loss = 0, validation_error = 0, gradients = 0;
  std::vector<double> losses, errors;  // by validation example, means over seeds; empty unless every seed has
                                       // recorded them

  /// The mean that `select` judges by, of errors or losses, and what it is the mean of.
  double judged(const std::string& select) const {
    return select == kByErrors ? validation_error : validation_loss;
  }
  const std::vector<double>& judged_by_example(const std::string& select) const {
    return select == kByErrors ? errors : losses;
  }
};
/// The standard error of the mean over examples, from the examples alone; NaN for fewer than two.
double standard_error_of(const std::vector<double>& by_example);

/// What was chosen for one group at one rung; at the last rung it is the choice.
struct Choice {
  std::string group, protocol;
  std::string select = kByLoss;
  Settings when;
  Candidate winner;
  bool any_ended = true;      // false: every candidate diverged or failed, and the smallest rate was taken
  std::vector<Score> scores;  // by rising rate
  std::vector<size_t> order;  // of scores, the best first

  const Score& best() const { return scores[order.front()]; }
};

/// Scores of each group, in the order of first appearance, ranked by the least mean final validation loss.
/// Protocol B first takes the candidates with which every seed reached the target, and among those the ones
/// of which fewer seeds overshot; where none got there with every seed, validation loss alone decides. Equal
/// losses: the fewest image gradients (protocol B), then the smaller rate, then the earlier trial. With `select`
/// kByErrors the share of examples that are wrong stands in the place of the loss, with kByGradients the fewest
/// image gradients come before the loss and before overshooting.
std::vector<Choice> choose(const std::vector<Trial>& trials, const std::string& select = kByLoss);

/// Whether `b` stands behind `a` by its loss (or gradients, rate, trial) alone: nothing that comes first
/// tells them apart.
bool of_one_class(const Score& a, const Score& b, const Choice& choice);

/// The best of each group, that many.
Entrants best_of(const std::vector<Choice>& choices, int64_t count);

/// From the run's status.json and run.h5; an unreadable or failed run is a trial with status failed.
Trial read_trial(const Cell& cell, const std::string& run_folder);

Winners winners_of(const std::vector<Choice>& choices);

}  // namespace basin
