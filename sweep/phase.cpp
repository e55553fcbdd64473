#include "sweep/phase.h"

#include <chrono>
#include <csignal>
#include <deque>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/file_lock.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "core/math/nan.h"
#include "core/messages.h"
#include "core/process_pool.h"
#include "core/progress.h"
#include "core/provenance.h"
#include "runs/folder.h"
#include "runs/outcome_text.h"
#include "runs/probe_progress.h"
#include "runs/probes_done.h"
#include "sweep/claims.h"
#include "sweep/folder.h"
#include "sweep/order.h"
#include "trainers/recorder.h"

namespace basin {
namespace {

constexpr double kTick = 0.2;      // seconds between looks at the workers' status
constexpr double kPatience = 120;  // seconds that interrupted workers have to write their checkpoints

const int kFileFault = IoError("").exit_code();

// "2026-11-21T14:03:22Z info started": what the run itself logs.
bool is_log_entry(const std::string& line) { return line.size() > 20 && line[10] == 'T' && line[19] == 'Z'; }

// Last thing that a worker said on its streams, without "basin: "; `start` is the log's length before it
// began.
std::string last_words(const std::string& log, uintmax_t start) {
  std::ifstream file(log);
  file.seekg(static_cast<std::streamoff>(start));
  std::string line, last;
  while (std::getline(file, line)) {
    if (!line.empty() && !is_log_entry(line)) last = line;
  }
  return last.rfind("basin: ", 0) == 0 ? last.substr(7) : last;
}

std::string probing_text(const std::string& folder) {
  const std::optional<ProbeStep> step = read_probe_progress(folder);
  return step ? to_text(*step) : "";
}

uintmax_t size_of(const std::string& path) {
  std::error_code missing;
  const uintmax_t size = std::filesystem::file_size(path, missing);
  return missing ? 0 : size;
}

class Phase {
 public:
  Phase(std::vector<PlacedCell> cells, const CostModel& costs, const PhaseOptions& options,
        SweepObserver& observer)
      : options_(options), costs_(costs), observer_(observer) {
    if (!options.claims.empty()) claims_.emplace(options.claims);
    observer_.begin(options.what);
    state_.total = static_cast<int64_t>(cells.size());
    std::vector<Cell> listed;
    for (const PlacedCell& placed : cells) listed.push_back(placed.cell);
    for (const size_t i : running_order(listed, costs_)) admit(std::move(cells[i]));
  }

  ~Phase() { observer_.end(); }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

  PhaseResult run() {
    while (!waiting_.empty() || pool_.running() > 0) {
      if (interrupt_signal() != 0) stop_workers();
      throw_if_interrupted();
      if (options_.fail_fast && failed_now_) return fail_fast();
      drop_orphans();
      while (pool_.running() < static_cast<size_t>(options_.jobs) && start_next()) {
      }
      if (pool_.running() == 0 && !waiting_.empty())
        claims_&& any_is_ready() ? wait_for_others() : drop_circle();
      for (const ProcessResult& result : pool_.collect(kTick)) conclude(result);
      show();
    }
    return result_;
  }

 private:
  void admit(PlacedCell placed) {
    queue_run(placed.folder, placed.cell);
    folders_[placed.cell.run_id] = placed.folder;
    if (options_.retry_failed)
      first_try_[placed.cell.run_id] = try_of(status_of(placed.folder, placed.cell.run_id));
    if (settle(placed)) return;
    left_[placed.cell.run_id] =
        costs_.seconds_left(placed.cell, status_of(placed.folder, placed.cell.run_id));
    waiting_.push_back(std::move(placed));
  }

  /// By which one try of a run is known from the next, of another process at that: two may end in one second, and clocks of hosts differ.
  static std::string try_of(const RunStatus& status) {
    return fmt::format("{} {} {} {}", to_string(status.status), status.host, status.pid, status.updated_utc);
  }

  /// Whether there is nothing to run: the cell is done, or failed before and isn't to be tried again.
  bool settle(const PlacedCell& placed) {
    if (has_nothing_left(placed)) {
      remove_states(placed.folder);
      ++result_.final_before;
      ++state_.done;
      return true;
    }
    const RunStatus status = status_of(placed.folder, placed.cell.run_id);
    if (status.status != RunState::failed) return false;
    // Another process may have tried again since this one began.
    if (options_.retry_failed && try_of(status) == first_try_.at(placed.cell.run_id)) return false;
    report_problem(placed, "failed before: " + status.message);
    return true;
  }

  bool has_nothing_left(const PlacedCell& placed) const {
    return is_trained(placed.folder, placed.cell.run_id) &&
           (!options_.probes || probes_done(placed.folder, placed.cell.options));
  }

  static bool is_trained(const std::string& folder, const std::string& run_id) {
    return is_final(status_of(folder, run_id).status) && std::filesystem::exists(folder + "/run.h5");
  }

  /// A parent that isn't among the cells lies next to the run that needs it.
  bool is_ready(const PlacedCell& placed, const std::string& parent) {
    if (ready_.count(parent)) return true;
    const auto known = folders_.find(parent);
    const std::string folder =
        known != folders_.end() ? known->second
                                : std::filesystem::path(placed.folder).parent_path().string() + "/" + parent;
    if (!is_trained(folder, parent)) return false;
    ready_.insert(parent);
    return true;
  }

  bool is_under_way(const std::string& run_id) const {
    const auto is_it = [&](const PlacedCell& placed) { return placed.cell.run_id == run_id; };
    return std::any_of(waiting_.begin(), waiting_.end(), is_it) ||
           std::any_of(running_.begin(), running_.end(), is_it);
  }

  /// Reports cells whose parents will not end any more; those that wait for them in turn are found in the next round.
  void drop_orphans() {
    for (bool dropped = true; dropped;) {
      dropped = false;
      for (auto placed = waiting_.begin(); placed != waiting_.end(); ++placed) {
        const std::vector<std::string>& parents = placed->cell.parents;
        const auto lost = std::find_if(parents.begin(), parents.end(), [&](const std::string& parent) {
          return !is_under_way(parent) && !is_ready(*placed, parent);
        });
        if (lost == parents.end()) continue;
        report_line(*placed, folders_.count(*lost) ? fmt::format("parent {} failed", *lost)
                             : claims_             ? fmt::format("run its parent {} first", *lost)
                                                   : fmt::format("parent {} is no run of this sweep", *lost));
        waiting_.erase(placed);
        dropped = true;
        break;
      }
    }
  }

  /// Nothing runs and nothing can begin: cells that wait for one another. A study has none; this is so that no fault hangs.
  void drop_circle() {
    for (const PlacedCell& placed : waiting_)
      report_line(placed,
                  fmt::format("its parents ({}) wait for one another", fmt::join(placed.cell.parents, ", ")));
    waiting_.clear();
  }

  /// False where another process has claimed the run or is at work in its folder: a worker may outlive, for a moment, the sweep
  /// that was killed.
  bool claim(const PlacedCell& placed) {
    if (!claims_) return true;
    if (!claims_->take(claim_of(placed.cell.run_id))) return false;
    if (FileLock::attempt(placed.folder + "/lock")) return true;
    release(placed.cell);
    return false;
  }

  void release(const Cell& cell) {
    if (claims_) claims_->release(claim_of(cell.run_id));
  }

  /// A run's id is a hexadecimal number.
  static int64_t claim_of(const std::string& run_id) { return std::stoll(run_id, nullptr, 16); }

  bool parents_ready(const PlacedCell& placed) {
    const std::vector<std::string>& parents = placed.cell.parents;
    return std::all_of(parents.begin(), parents.end(),
                       [&](const std::string& parent) { return is_ready(placed, parent); });
  }

  bool any_is_ready() {
    return std::any_of(waiting_.begin(), waiting_.end(),
                       [&](const PlacedCell& placed) { return parents_ready(placed); });
  }

  /// What is ready and couldn't begin has been claimed elsewhere.
  void wait_for_others() {
    if (!std::exchange(said_waiting_, true))
      observer_.announce(
          fmt::format("waiting for {} that other processes are at work on", counted(waiting_.size(), "run")));
    std::this_thread::sleep_for(std::chrono::duration<double>(kTick));
  }

  /// False where no waiting cell can begin.
  bool start_next() {
    const auto next = std::find_if(waiting_.begin(), waiting_.end(), [&](const PlacedCell& placed) {
      return parents_ready(placed) && claim(placed);
    });
    if (next == waiting_.end()) return false;
    PlacedCell placed = std::move(*next);
    waiting_.erase(next);
    if (claims_ && settle(placed)) {  // another process has run it since
      release(placed.cell);
      return true;
    }
    start(std::move(placed));
    return true;
  }

  void start(PlacedCell placed) {
    RunOptions options = placed.cell.options;
    options.runtime.threads = options_.threads;
    write_cell_file(placed.folder, options);
    ProcessJob job{placed.cell.run_id,
                   options_.program,
                   {"run-cell", placed.folder},
                   placed.folder + "/run.log",
                   {{"OMP_NUM_THREADS", std::to_string(options_.threads)}},
                   0};
    if (!options_.probes) job.arguments.push_back("--no-probes");
    if (options_.ranks > 1)
      job.arguments.insert(job.arguments.end(), {"--ranks", std::to_string(options_.ranks)});
    log_start_[placed.cell.run_id] = size_of(job.log);
    pool_.start(job);
    running_.push_back(std::move(placed));
  }

  PlacedCell take_running(const std::string& run_id) {
    const auto found = std::find_if(running_.begin(), running_.end(),
                                    [&](const PlacedCell& placed) { return placed.cell.run_id == run_id; });
    PlacedCell placed = std::move(*found);
    running_.erase(found);
    return placed;
  }

  void conclude(const ProcessResult& result) {
    const PlacedCell placed = take_running(result.id);
    const RunStatus status = status_of(placed.folder, result.id);
    if (result.ok() && is_final(status.status)) {
      ++result_.ended;
      ++state_.done;
      correct_forecast(result);
      announce(placed, status, result.seconds);
    } else if (result.exit_code == 128 + SIGTERM || result.exit_code == 128 + SIGINT) {
      report_problem(placed, "interrupted; run the sweep again to resume");
    } else {
      conclude_failed(placed, status, result);
    }
    release(placed.cell);  // now that its status says how it ended
  }

  /// By runs that this process saw from their first update to their last probe: of another's rest the model knows less.
  void correct_forecast(const ProcessResult& result) {
    if (left_.at(result.id) < costs_.seconds(result.id)) return;
    measured_seconds_ += result.seconds;
    expected_seconds_ += costs_.seconds(result.id);
  }

  void conclude_failed(const PlacedCell& placed, RunStatus status, const ProcessResult& result) {
    failed_now_ = true;
    const bool ended_itself = result.signal == 0 && !result.timed_out;
    const std::string said =
        ended_itself ? last_words(placed.folder + "/run.log", log_start_[result.id]) : "";
    const std::string reason =
        said.empty() ? fmt::format("{}: worker ended: {}", placed.folder, result.describe()) : said;
    if (result.exit_code == kFileFault && result_.file_fault.empty()) result_.file_fault = reason;
    if (is_final(status.status)) {  // the training stands; only what came after it went wrong
      note_probes_failed(placed.folder, reason);
      report_problem(placed, "probes failed: " + reason);
      return;
    }
    if (status.status != RunState::failed) {
      status.run_id = result.id;
      status.status = RunState::failed;
      status.message = reason;
      status.updated_utc = utc_now();
      try {
        write_status(placed.folder + "/status.json", status);
      } catch (const IoError& error) {
        observer_.announce(error.what());
      }
    }
    report_problem(placed, status.message.empty() ? reason : status.message);
  }

  void report_problem(const PlacedCell& placed, const std::string& reason) {
    report_line(placed, fmt::format("{} (log: {}/run.log)", reason, placed.folder));
  }

  void report_line(const PlacedCell& placed, const std::string& reason) {
    ++state_.failed;
    const std::string line = fmt::format("{} {}: {}", placed.cell.run_id, placed.cell.label, reason);
    result_.problems.push_back(line);
    observer_.announce(in_colour(Colour::red, "FAILED") + "  " + line);
  }

  void announce(const PlacedCell& placed, const RunStatus& status, double seconds) {
    observer_.announce(fmt::format("[{}/{}] {} {}  {}  {:.1f} s{}", state_.done, state_.total,
                                   placed.cell.run_id, placed.cell.label, in_colour(status.status), seconds,
                                   outcome_text(placed.folder, status)));
  }

  PhaseResult fail_fast() {
    observer_.announce("--fail-fast: stopping the other workers");
    pool_.signal_all(SIGTERM);
    drain();
    return result_;
  }

  void stop_workers() {
    observer_.announce(pool_.running() == 1 ? "stopping the worker, which writes its checkpoint first"
                                            : "stopping the workers, which write their checkpoints first");
    pool_.signal_all(SIGTERM);
    drain();
    observer_.announce("interrupted; the same command resumes from here");
  }

  // Waits for the workers; the pool's destructor kills those that take no end.
  void drain() {
    for (int ticks = 0; pool_.running() > 0 && ticks * kTick < kPatience; ++ticks) pool_.collect(kTick);
  }

  void show() {
    state_.workers.clear();
    std::vector<double> left;
    const double factor = expected_seconds_ > 0 ? measured_seconds_ / expected_seconds_ : 1;
    for (const PlacedCell& placed : running_) {
      const RunStatus status = status_of(placed.folder, placed.cell.run_id);
      const bool trained = is_final(status.status);
      state_.workers.push_back({placed.cell.label,
                                !trained          ? Activity::training
                                : options_.probes ? Activity::probing
                                                  : Activity::ending,
                                status.update, status.done, status.images_per_second, status.loss,
                                trained ? probing_text(placed.folder) : ""});
      const double expected = factor * left_.at(placed.cell.run_id);
      left.push_back(std::max(0.05 * expected, expected - pool_.running_for(placed.cell.run_id)));
    }
    for (const PlacedCell& placed : waiting_) left.push_back(factor * left_.at(placed.cell.run_id));
    state_.seconds_left = left.empty() ? kNaN : makespan(left, options_.jobs);
    observer_.update(state_);
  }

  PhaseOptions options_;
  const CostModel& costs_;
  SweepObserver& observer_;
  SweepState state_;
  PhaseResult result_;
  std::deque<PlacedCell> waiting_;
  std::vector<PlacedCell> running_;
  std::map<std::string, std::string> folders_;    // of all cells, by run_id
  std::set<std::string> ready_;                   // parents whose records are final
  std::map<std::string, std::string> first_try_;  // to be tried again, by run_id: what was there at first
  std::map<std::string, double> left_;            // expected seconds as this process found the run, by run_id
  std::map<std::string, uintmax_t> log_start_;    // by run_id: length of run.log before the worker began
  std::optional<Claims> claims_;
  ProcessPool pool_;
  bool failed_now_ = false, said_waiting_ = false;
  double measured_seconds_ = 0, expected_seconds_ = 0;
};

}  // namespace

PhaseResult run_cells(std::vector<PlacedCell> cells, const CostModel& costs, const PhaseOptions& options,
                      SweepObserver& observer) {
  return Phase(std::move(cells), costs, options, observer).run();
}

}  // namespace basin
