// defines: ProbeStep, where the probing of a run stands; ProbeCountdown, and RUN/probes/progress, which says it to others.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/clock.h"
#include "study/run_options.h"

namespace basin {

/// A probe that begins on a checkpoint: the `number`-th, from 1, of `total`.
struct ProbeStep {
  int64_t number = 0, total = 0;
  std::string checkpoint, probe;
  double seconds_left = NAN;  // of all that are left, this one included; NaN: unknown
};

/// "3/12: end top_eigenvalues, about 40 s left"
std::string to_text(const ProbeStep& step);

/// Counts the probes of a plan on its checkpoints, and expects each that is left to take the mean of its own times at earlier
/// checkpoints; before there is one, as long for what it says that it computes as those that were measured took.
class ProbeCountdown {
 public:
  ProbeCountdown(const ProbePlan& plan, const OptionSets& probe_options, size_t checkpoints);
  ProbeStep begin(const std::string& checkpoint, const std::string& probe);
  /// The one that was begun last; one that had been measured before tells nothing about time.
  void end(bool measured);

 private:
  struct Pace {
    double cost = 0;       // in image gradients
    int64_t left = 0;      // checkpoints
    int64_t measured = 0;  // checkpoints
    double seconds = 0;    // of those
  };
  double seconds_left() const;
  std::map<std::string, Pace> paces_;  // by probe
  std::string at_work_;
  int64_t begun_ = 0, total_ = 0;
  Clock::time_point start_;
};

void write_probe_progress(const std::string& run_folder, const ProbeStep& step);
/// Nothing where no probe is at work or the file can't be read.
std::optional<ProbeStep> read_probe_progress(const std::string& run_folder);
/// Since it was written; NaN where it isn't there.
double seconds_since_probe_progress(const std::string& run_folder);
void remove_probe_progress(const std::string& run_folder);

}  // namespace basin
