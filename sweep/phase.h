// defines: run_cells(), a list of cells in worker processes; PhaseOptions, PhaseResult.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/process_pool.h"
#include "study/study.h"
#include "sweep/cost_model.h"
#include "sweep/observer.h"

namespace basin {

struct PhaseOptions {
  std::string what = "sweep";                // for the observer
  WorkerProgram program;                     // that knows run-cell
  int64_t jobs = 1, threads = 1, ranks = 1;  // workers; of each the ranks, and threads of a rank
  bool probes = true, fail_fast = false, retry_failed = false;
  std::string claims;  // file by which processes share the cells (claims.h); empty: this one has all
};

/// A cell and the folder that it runs in.
struct PlacedCell {
  Cell cell;
  std::string folder;
};

struct PhaseResult {
  int64_t final_before = 0;           // had nothing left to do
  int64_t ended = 0;                  // came to a final status now
  std::vector<std::string> problems;  // a line for each cell that failed, now or before, or whose probes did
  std::string
      file_fault;  // what the first worker said that couldn't read or write a file (a full disk); else empty
};

/// Runs what is left of the cells in running_order(), one process each. A worker that crashes, throws or is killed leaves
/// its cell with status failed and a message; the others go on, unless fail_fast. A cell with parents begins once the records of
/// all of these are final. Where one can't get there any more (it failed, was interrupted, or is no run of this sweep), its cell
/// is a problem of one line, "parent ID failed", and stays queued for the next sweep. Where cells are shared, what another process
/// has claimed is left to it, and waited for where nothing else is left. On SIGINT or SIGTERM the workers get SIGTERM, leave
/// resumable states, and Interrupted is thrown.
PhaseResult run_cells(std::vector<PlacedCell> cells, const CostModel& costs, const PhaseOptions& options,
                      SweepObserver& observer);

}  // namespace basin
