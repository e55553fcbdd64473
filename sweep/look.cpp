#include "sweep/look.h"

#include "core/file_lock.h"
#include "core/math/nan.h"
#include "core/provenance.h"
#include "runs/probe_progress.h"
#include "runs/probes_done.h"

namespace basin {
namespace {

bool has_begun(const RunStatus& status, const std::optional<ProbeStep>& probing) {
  return status.status == RunState::running || (is_final(status.status) && probing);
}

bool was_killed(const RunStatus& status, const std::string& folder) {
  return FileLock::holder_was_killed(folder + (is_final(status.status) ? "/probes/lock" : "/lock"));
}

RunAtWork run_at_work(const Cell& cell, const std::string& folder, const RunStatus& status,
                      const std::optional<ProbeStep>& probing) {
  RunAtWork run{cell.run_id, status.host, status.pid, kNaN, {}};
  run.line.label = cell.label;
  run.line.activity = is_final(status.status) ? Activity::probing : Activity::training;
  run.line.update = status.update;
  run.line.done = status.done;
  run.line.images_per_second = status.images_per_second;
  run.line.loss = status.loss;
  if (probing) run.line.probing = to_text(*probing);
  run.silent_seconds = probing ? seconds_since_probe_progress(folder) : seconds_since_utc(status.updated_utc);
  return run;
}

}  // namespace

SweepState SweepLook::state() const {
  SweepState state;
  state.total = static_cast<int64_t>(plan.cells.size());
  state.done = static_cast<int64_t>(plan.count(Standing::done));
  state.failed = static_cast<int64_t>(failures.size());
  state.seconds_left = kNaN;
  for (const RunAtWork& run : at_work) state.workers.push_back(run.line);
  return state;
}

SweepLook look_at(const Study& study, const SweepPaths& out, const PlanScope& scope) {
  SweepLook look;
  look.plan = plan_sweep(study, out, scope);
  const std::vector<size_t> listed = runs_to_come(look.plan, out);
  const std::set<size_t> to_come(listed.begin(), listed.end());
  look.to_come = to_come.size();
  for (size_t i = 0; i < look.plan.cells.size(); ++i) {
    if (look.plan.standing[i] == Standing::done) continue;
    const Cell& cell = look.plan.cells[i];
    const std::string folder = out.tuning_folder(cell.run_id);
    const RunStatus status = status_of(folder, cell.run_id);
    const std::optional<ProbeStep> probing = read_probe_progress(folder);
    const bool begun = has_begun(status, probing), killed = begun && was_killed(status, folder);
    look.killed += killed;
    if (begun && !killed) {
      look.at_work.push_back(run_at_work(cell, folder, status, probing));
    } else if (look.plan.standing[i] == Standing::failed || probes_failed(folder)) {
      look.failures.push_back(
          fmt::format("{} {}: {} (log: {}/run.log)", cell.run_id, cell.label,
                      look.plan.standing[i] == Standing::failed ? status.message : "probes failed", folder));
    } else if (!to_come.count(i)) {
      ++look.lost;
    } else {
      look.unprobed += is_final(status.status);
    }
  }
  return look;
}

}  // namespace basin
