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

std::optional<RunRecord> final_in_run_file(const std::string& path) {
  if (!fs::exists(path)) return std::nullopt;
  try {
    RunRecord record = read_run_file(path);
    return is_final(record.status) ? std::optional(std::move(record)) : std::nullopt;
  } catch (const DamagedError&) {
    return std::nullopt;
  }
}

std::optional<RunRecord> final_in_journal(const std::string& path) {
  if (!fs::exists(path)) return std::nullopt;
  try {
    RunRecord record = replay_journal(path);
    return is_final(record.status) ? std::optional(std::move(record)) : std::nullopt;
  } catch (const IoError&) {
    return std::nullopt;
  }
}

bool says_more_than_queued(const std::string& status) {
  if (!fs::exists(status)) return false;
  try {
    return read_status(status).status != RunState::queued;
  } catch (const IoError&) {
    return false;  // half a file of a full disk
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
  const std::string file = run_folder + "/run.h5", status = run_folder + "/status.json";
  std::optional<RunRecord> record = final_in_run_file(file);
  if (!record) {
    record = final_in_journal(run_folder + "/journal");
    if (record) write_run_file(file, *record);
  }
  if (record && !says_more_than_queued(status)) write_end(status, *record);
  return record;
}

}  // namespace basin
