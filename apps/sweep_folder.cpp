#include "apps/sweep_folder.h"

#include "apps/study_compare.h"
#include "core/error.h"
#include "core/provenance.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

std::string made(std::string path) {
  make_folders(path + "/runs");
  return path;
}

}  // namespace

SweepFolder::SweepFolder(std::string path)
    : path_(made(std::move(path))), lock_(path_ + "/lock", "the sweep folder " + path_) {}

void SweepFolder::admit(const Study& study, bool extend) {
  const std::string frozen_path = path_ + "/study.toml";
  if (fs::exists(frozen_path) && read_file(frozen_path) != study.text) {
    const std::vector<std::string> ours = fingerprints(study);
    const std::vector<std::string> frozen = fingerprints(read_study(frozen_path, {}));
    const bool contained = std::includes(ours.begin(), ours.end(), frozen.begin(), frozen.end());
    if (ours != frozen && !(extend && contained)) {
      throw ConfigError(
          fmt::format("{} holds another study ({} runs, this one has {}; see {}): choose another --out{}",
                      path_, frozen.size(), ours.size(), frozen_path,
                      !contained ? "" : ", or --extend to add this study's further runs to it"));
    }
  }
  write_file_atomically(frozen_path, study.text);
}

std::string SweepFolder::tuning_folder(const std::string& run_id) const {
  const std::string chosen = run_folder(run_id);
  return fs::exists(chosen) ? chosen : path_ + "/tuning/" + run_id;
}

void SweepFolder::keep_chosen(const std::set<std::string>& run_ids,
                              const std::set<std::string>& tuning_ids) const {
  make_folders(path_ + "/tuning");
  for (const std::string& run_id : run_ids) {
    const std::string tuned = path_ + "/tuning/" + run_id;
    if (fs::exists(tuned) && !fs::exists(run_folder(run_id))) fs::rename(tuned, run_folder(run_id));
  }
  for (const std::string& run_id : tuning_ids) {
    if (!run_ids.count(run_id) && fs::exists(run_folder(run_id))) {
      fs::rename(run_folder(run_id), path_ + "/tuning/" + run_id);
    }
  }
}

RunStatus status_of(const std::string& run_folder, const std::string& run_id) {
  try {
    if (fs::exists(run_folder + "/status.json")) return read_status(run_folder + "/status.json");
  } catch (const IoError&) {  // half a file of a full disk: the run says anew where it stands
  }
  RunStatus status;
  status.run_id = run_id;
  return status;
}

void queue_run(const std::string& run_folder, const Cell& cell) {
  if (fs::exists(run_folder + "/status.json")) return;
  make_folders(run_folder);
  write_file_atomically(run_folder + "/config.toml", cell.options.resolved());
  RunStatus status;
  status.run_id = cell.run_id;
  status.updated_utc = utc_now();
  write_status(run_folder + "/status.json", status);
}

}  // namespace basin
