// defines: run_study(), a study from its folder to its table; StudyRequest, WorkerRequest, StudyOutcome; calibrate_if_worthwhile().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/process_pool.h"
#include "study/study.h"
#include "sweep/observer.h"
#include "sweep/plan.h"

namespace basin {

struct WorkerRequest {
  WorkerProgram program;                     // that knows run-cell and time-cell
  int64_t jobs = 1, threads = 1, ranks = 1;  // ranks that share a run, and threads of each
  int64_t cpus() const { return jobs * threads * ranks; }
};

struct StudyRequest : WorkerRequest {
  std::string out;  // folder of the sweep
  PlanScope scope;
  bool retry_failed = false, fail_fast = false, extend = false;
};

struct StudyOutcome {
  std::vector<std::string> problems;  // a line for each run without a result
  std::string file_fault;             // the first file that couldn't be read or written; else empty
  std::string table;                  // table.md; empty where nothing was collected
  size_t left_to_others = 0;  // runs of the study, where a part was made: nothing was collected unless 0
  std::string selection;      // table of what tuning chose; empty where nothing was tuned
};

/// CostModel::calibrate() where `seconds` of work are left that make it worth its two seconds; where it fails, the observer hears why.
/// Whether the figures are this machine's now.
bool calibrate_if_worthwhile(CostModel& costs, double seconds, const WorkerRequest& workers,
                             SweepObserver& observer);

/// Tunes where the study asks for it, then runs the cells with what was chosen and collects them into OUT. ConfigError where
/// OUT holds another study, IoError where another process works in it. DataError, before OUT is made, where the data of a run that
/// is left can't be loaded. A part of the study is made next to other processes that work on other parts; whichever ends the last
/// run of the study collects. Interrupted after SIGINT or SIGTERM: the same call goes on from there.
StudyOutcome run_study(const Study& study, const StudyRequest& request, SweepObserver& observer);

}  // namespace basin
