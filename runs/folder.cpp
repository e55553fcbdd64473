#include "runs/folder.h"

#include <filesystem>

#include "core/error.h"
#include "core/files.h"
#include "core/provenance.h"
#include "runs/ended.h"

namespace basin {

namespace fs = std::filesystem;

std::string run_folder(const std::string& out, const RunOptions& options) {
  return out + "/runs/" + options.run_id();
}

std::string SweepPaths::tuning_folder(const std::string& run_id) const {
  const std::string chosen = run_folder(run_id);
  if (fs::exists(chosen)) return chosen;
  const std::string tuned = path_ + "/tuning/" + run_id;
  return !fs::exists(tuned) && fs::exists(chosen) ? chosen : tuned;  // another process may be moving it
}

std::string run_next_to(const std::string& run_folder, const std::string& run_id) {
  return fs::path(run_folder).parent_path().string() + "/" + run_id;
}

IoError untrained(const std::string& path, const std::string& key) {
  return IoError(fmt::format("{}: missing: {} names this run, which is to be trained first", path, key));
}

void require_run(const std::string& path, const std::string& found, const std::string& named,
                 const std::string& key) {
  if (found != named)
    throw IoError(fmt::format("{}: is of run {}, not of {}, which {} names", path, found, named, key));
}

std::string cell_path(const std::string& folder) { return folder + "/cell.toml"; }

void write_cell_file(const std::string& folder, const RunOptions& options) {
  write_file_atomically(cell_path(folder), options.table().to_toml());
}

std::optional<RunOptions> study_options(const std::string& run_folder) {
  const std::string path = cell_path(run_folder);
  if (!fs::exists(path)) return std::nullopt;
  const std::string text = read_file(path);
  if (text.empty() || text.back() != '\n')
    throw IoError(path + ": damaged or incomplete (its last line has no end)");
  return run_options_from(parse_toml(text, path), {});
}

bool is_sweep_folder(const std::string& path) {
  return fs::exists(path + "/study.toml") || fs::is_directory(path + "/runs");
}

std::string frozen_study(const std::string& out) {
  const std::string file = out + "/study.toml";
  if (!fs::exists(file)) throw IoError(out + ": no folder of a sweep (it has no study.toml)");
  return file;
}

void queue_run(const std::string& run_folder, const Cell& cell) {
  if (fs::exists(run_folder + "/status.json") || ended_record(run_folder)) return;
  make_folders(run_folder);
  write_file_atomically(run_folder + "/config.toml", cell.options.resolved());
  RunStatus status;
  status.run_id = cell.run_id;
  status.updated_utc = utc_now();
  write_status(run_folder + "/status.json", status);
}

}  // namespace basin
