// defines: probe_run(), the probes of a ProbePlan on the checkpoints of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/quantity.h"
#include "ranks/rank_group.h"
#include "runs/probe_progress.h"
#include "study/run_options.h"

namespace basin {

struct ProbeRequest {
  ProbePlan plan;
  OptionSets probe_options;
  RuntimeOptions runtime;
  bool force = false;  // measure again where a file with the same settings exists
};

/// What came of one probe on one checkpoint.
struct ProbeOutcome {
  std::string checkpoint, probe, path;
  ProbeStatus status = ProbeStatus::ok;
  std::string message = {};
  double seconds = 0;
  bool skipped = false;
};

/// Measures every checkpoint that plan.at names with every probe in plan.run, and writes probe_path() of
/// runs/probe_settings.h for each. Works from the checkpoint's own config alone, so on old runs too. A probe that throws
/// is recorded with status failed. `begins` is called before each.
///
/// All ranks call it with the same request and a folder that all of them see, and share the examples of every pass; rank 0 alone writes.
/// A probe that fails on every rank alike is recorded; one that fails on some ends all of them.
std::vector<ProbeOutcome> probe_run(const std::string& run_folder, const ProbeRequest& request,
                                    const std::function<void(const ProbeStep&)>& begins = {},
                                    const RankGroup& ranks = RankGroup::alone());

}  // namespace basin
