// defines: RunProgress, what changes while a run goes on besides tensors, and its names in checkpoints; Ending.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace basin {

/// Why a run made no more updates before its budget was used up.
enum class Ending { none, target, diverged };

struct RunProgress {
  int64_t update = 0, examples = 0, gradients = 0;
  int64_t next_check = 0, next_evaluation = 0;  // in examples
  bool near_target = false;                     // a check was: they are denser since
  int64_t levels_passed = 0;                    // loss levels
  double steps_to_target = NAN;
  bool overshot = false;
  Ending ending = Ending::none;
  std::string message;
  double seconds = 0, update_seconds = 0;  // wall time: all, and that of updates alone
};

/// visit(name, field) for all fields: the one place that knows what they are called in a checkpoint.
template <class Progress, class Visit>
void visit_fields(Progress& progress, Visit&& visit) {
  visit("update", progress.update);
  visit("examples", progress.examples);
  visit("gradients", progress.gradients);
  visit("next_check", progress.next_check);
  visit("near_target", progress.near_target);
  visit("next_evaluation", progress.next_evaluation);
  visit("levels_passed", progress.levels_passed);
  visit("steps_to_target", progress.steps_to_target);
  visit("overshot", progress.overshot);
  visit("ending", progress.ending);
  visit("message", progress.message);
  visit("seconds", progress.seconds);
  visit("update_seconds", progress.update_seconds);
}

}  // namespace basin
