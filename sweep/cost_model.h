// defines: CellWork and CostModel: what a cell computes, what that costs here, how long a study takes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/process_pool.h"
#include "study/study.h"
#include "sweep/measure_speed.h"

namespace basin {

struct BranchPoint;
struct ExpectedRun;
struct RunStatus;

struct SplitSizes {
  int64_t train = 0, validation = 0, test = 0;
};

/// What one cell computes, in counts.
struct CellWork {
  int64_t updates = 0;
  double images_per_update =
      0;                 // distinct ones, where duplicates are merged; the mean, where the batch grows
  double gradients = 0;  // updates x images_per_update, twice that with a perturbation
  double forwards = 0;   // images evaluated for checks and evaluations
  double probe_gradients = 0, probe_hvps = 0;  // image gradients and image Hessian-vector products
  bool gradients_expected = false;             // from [[sweep.expect]] and not from the protocol's cap
  int64_t checkpoints = 0, probe_files = 0;    // at the end
  double record_bytes = 0;                     // of run.h5
};

/// What a run leaves on the disk.
struct DiskUse {
  int64_t files = 0;
  double bytes = 0;
};

/// Counts from the options alone. A protocol-B cell is taken to run to its cap unless [[sweep.expect]] says less; every
/// loss level is taken to be reached, but only at the end, so that no check is saved. With `with_probes` false nothing is
/// measured. A branch is counted from `point` on.
CellWork plan_work(const Cell& cell, const SplitSizes& sizes, bool with_probes,
                   const BranchPoint* point = nullptr);

/// Linear between the measured points and beyond the last.
double update_seconds(const CellSpeed& speed, double images);
double expected_seconds(const CellWork& work, const CellSpeed& speed);
/// The part of them that the probes take.
double expected_probe_seconds(const CellWork& work, const CellSpeed& speed);
DiskUse expected_disk(const CellWork& work, const CellSpeed& speed);

/// Expected seconds of every cell, by run_id.
class CostModel {
 public:
  /// Uses round figures for an average CPU: good for the order of cells, not for promises. Reads the data for its sizes.
  /// ConfigError with the cell's label where its options and sizes don't go together.
  CostModel(const std::vector<Cell>& cells, const std::vector<bool>& probed);
  /// All of them with their probes, or none.
  CostModel(const std::vector<Cell>& cells, bool with_probes);
  /// Replaces the round figures: one benchmark for each kind of cell (model, optimiser, micro-batch, ...), in `jobs`
  /// processes of `program` at once, as in the sweep. Throws Error where one fails, and keeps
  /// the round figures then; Interrupted after SIGINT or SIGTERM.
  void calibrate(const WorkerProgram& program, int64_t jobs, int64_t threads);

  const CellWork& work(const std::string& run_id) const { return costs_.at(run_id).work; }
  double seconds(const std::string& run_id) const { return costs_.at(run_id).seconds; }
  double probe_seconds(const std::string& run_id) const { return costs_.at(run_id).probe_seconds; }
  /// What is left of a run with this status: one that was interrupted goes on, and one that is trained gets its probes, for all that is
  /// known here all of them.
  double seconds_left(const Cell& cell, const RunStatus& status) const;
  /// By round figures too until calibrate() has seen a checkpoint.
  DiskUse disk(const std::string& run_id) const { return costs_.at(run_id).disk; }
  /// What couldn't be known, one line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Cost {
    CellWork work;
    double seconds = 0, probe_seconds = 0;  // the latter are part of the former
    DiskUse disk;
    std::string kind;
  };
  /// Cells that share a speed.
  struct Kind {
    RunOptions example;
    std::set<int64_t> images;  // distinct images per update, of all its cells
  };
  /// One process of the micro-benchmark.
  struct Timing {
    std::string kind, folder;
  };
  std::vector<Timing> prepare_timings(const std::string& folder, int64_t jobs, int64_t threads) const;
  std::map<std::string, std::vector<CellSpeed>> time_round(const WorkerProgram& program, int64_t threads,
                                                           const std::vector<Timing>& round) const;
  SplitSizes sizes_of(const RunOptions& options);
  /// A cell, and whether it is probed.
  using Asked = std::pair<const Cell*, bool>;
  const ExpectedRun& expect(const Asked& asked, const std::map<std::string, Asked>& cells,
                            std::map<std::string, ExpectedRun>& expected, const CellSpeed& speed);
  std::map<std::string, Cost> costs_;
  std::map<std::string, Kind> kinds_;
  std::map<std::string, SplitSizes> sizes_;
  std::vector<std::string> notes_;
};

/// Wall time of jobs of these lengths, begun in this order, each when a worker is free.
double makespan(const std::vector<double>& seconds, int64_t workers);

/// Sizes of the splits; where the data can't be read, those that the set is known to have, and `message` says so.
SplitSizes split_sizes(const DataOptions& options, std::string& message);

}  // namespace basin
