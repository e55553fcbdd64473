#include <CLI/CLI.hpp>

#include "apps/subcommands.h"
#include "core/error.h"
#include "core/file_lock.h"
#include "core/provenance.h"
#include "io/journal.h"
#include "io/run_file.h"
#include "runs/folder.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

int64_t updates_in(const RunRecord& record) {
  const auto train = record.tables.find("train");
  return train == record.tables.end() ? 0 : train->second.row_count();
}

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

int recover(const std::string& folder) {
  const std::string journal = folder + "/journal", file = folder + "/run.h5";
  if (!fs::exists(journal)) {
    if (is_sweep_folder(folder)) {
      throw ConfigError(
          fmt::format("{0} is the folder of a sweep: name one of its runs, {0}/runs/<run_id>", folder));
    }
    throw IoError(folder + ": not a run folder (it has no journal)");
  }
  const FileLock lock(folder + "/lock", folder);
  bool torn = false;
  RunRecord record = replay_journal(journal, &torn);
  if (record.status == RunState::running) {
    if (const std::optional<RunRecord> whole = whole_record(file, record)) {
      fmt::print("{}: whole, status {}, {} updates; its journal has lost its end, so run.h5 stays as it is\n",
                 file, to_string(whole->status), updates_in(*whole));
      return 0;
    }
    settle_status(folder, record);
  }
  write_run_file(file, record);
  fmt::print("{}: run {} rebuilt from its journal, status {}{}\n", file, record.header.run_id,
             to_string(record.status),
             record.status_message.empty() ? "" : " (" + record.status_message + ")");
  for (const auto& [name, table] : record.tables) fmt::print("  {:<8} {} rows\n", name, table.row_count());
  if (torn) fmt::print("  the journal's last entry was cut off by a crash and left out\n");
  return 0;
}

}  // namespace

void add_recover(CLI::App& app, Action& action) {
  auto folder = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("recover", "Rebuild a run's run.h5 from its journal");
  command->add_option("RUN_DIR", *folder, "Folder of one run: OUT/runs/<run_id>")->required();
  command->callback([folder, &action] { action = [folder] { return recover(*folder); }; });
}

}  // namespace basin
