#include "runs/ended.h"

#include <filesystem>

#include "core/provenance.h"
#include "io/damaged.h"
#include "io/journal.h"
#include "io/run_file.h"
#include "io/status_file.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

/// What `read` makes of the file, where it says that the run ended; a Fault is no record.
template <class Fault, class Read>
std::optional<RunRecord> if_final(const std::string& path, const Read& read) {
  if (!fs::exists(path)) return std::nullopt;
  try {
    RunRecord record = read(path);
    return is_final(record.status) ? std::optional(std::move(record)) : std::nullopt;
  } catch (const Fault&) {
    return std::nullopt;
  }
}

void write_end(const std::string& path, const RunRecord& record) {
  RunStatus status;
  status.run_id = record.header.run_id;
  status.status = record.status;
  status.message = record.status_message;
  status.update = updates_in(record);
  status.done = 1;
  status.host = host_name();
  status.updated_utc = record.updated_utc;
  write_status(path, status);
}

}  // namespace

std::optional<RunRecord> ended_record(const std::string& run_folder) {
  const std::string file = run_folder + "/run.h5";
  std::optional<RunRecord> record = if_final<DamagedError>(file, read_run_file);
  if (!record) {
    record = if_final<IoError>(run_folder + "/journal",
                               [](const std::string& path) { return replay_journal(path); });
    if (record) write_run_file(file, *record);
  }
  if (record && status_of(run_folder, record->header.run_id).status == RunState::queued)
    write_end(run_folder + "/status.json", *record);
  return record;
}

}  // namespace basin
