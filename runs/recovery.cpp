#include "runs/recovery.h"

#include "core/error.h"
#include "core/file_lock.h"
#include "core/provenance.h"
#include "io/journal.h"
#include "io/run_file.h"
#include "runs/folder.h"

namespace basin {

namespace fs = std::filesystem;

namespace {

// A record of a run that ended, with all that the journal still has: then there is nothing to rebuild.
std::optional<RunRecord> whole_record(const std::string& path, const RunRecord& journal) {
  if (!fs::exists(path)) return std::nullopt;
  try {
    RunRecord record = read_run_file(path);
    const bool ours = record.header.run_id == journal.header.run_id && is_final(record.status);
    if (ours && updates_in(record) >= updates_in(journal)) return record;
    return std::nullopt;
  } catch (const IoError&) {
    return std::nullopt;  // what recover is for
  }
}

// A journal that ends while its run was going on doesn't say how the run ended, and no process is at it now. Its
// status.json does where the results are there too; else the run was interrupted, and status.json must say so as well,
// for a sweep takes a final status for a run that is done.
void settle_status(const std::string& folder, RunRecord& record) {
  RunStatus status = status_of(folder, record.header.run_id);
  const bool results_are_there = !record.summary.empty() && status.update == updates_in(record);
  if (status.status == RunState::failed || (is_final(status.status) && results_are_there)) {
    record.status = status.status;
    record.status_message = status.message;
    return;
  }
  record.status = status.status = RunState::interrupted;
  record.status_message = status.message =
      fmt::format("its journal ends after update {}", updates_in(record));
  status.update = updates_in(record);
  status.done = 0;  // where it goes on from, its checkpoint says
  status.updated_utc = utc_now();
  write_status(folder + "/status.json", status);
}

}  // namespace

Recovery recover_run(const std::string& run_folder) {
  const std::string journal = run_folder + "/journal", file = run_folder + "/run.h5";
  if (!fs::exists(journal)) {
    if (is_sweep_folder(run_folder)) {
      throw ConfigError(
          fmt::format("{0} is the folder of a sweep: name one of its runs, {0}/runs/<run_id>", run_folder));
    }
    throw IoError(run_folder + ": not a run folder (it has no journal)");
  }
  const FileLock lock(run_folder + "/lock", run_folder);
  Recovery found;
  found.record = replay_journal(journal, &found.torn);
  if (found.record.status == RunState::running) {
    if (std::optional<RunRecord> whole = whole_record(file, found.record))
      return {*std::move(whole), true, found.torn};
    settle_status(run_folder, found.record);
  }
  write_run_file(file, found.record);
  return found;
}

}  // namespace basin
