#include "sweep/folder.h"

#include <chrono>
#include <thread>

#include "core/error.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "core/messages.h"
#include "data/load.h"
#include "io/run_file.h"
#include "study/compare.h"
#include "trainers/data_identity.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

std::string made(const std::string& path) {
  make_folders(path + "/runs");
  return path;
}

// The data of a run that is done; nothing where there is none or its record can't be read, which collect() reports.
std::optional<DataAttributes> data_of_done_run(const std::string& folder, const std::string& run_id) {
  const std::string record = folder + "/run.h5";
  if (!is_final(status_of(folder, run_id).status) || !fs::exists(record)) return std::nullopt;
  try {
    return read_run_data(record);
  } catch (const IoError&) {
    return std::nullopt;
  }
}

// Nothing, and a line on stderr, where the data isn't there.
std::optional<DataAttributes> data_now(const DataOptions& options) {
  try {
    return data_attributes(load_dataset(options));
  } catch (const DataError& error) {
    fmt::print(stderr, "note: {}; runs trained on it are used as they are\n", error.what());
    return std::nullopt;
  }
}

}  // namespace

void require_same_study(const SweepPaths& out, const Study& study, bool extend) {
  const std::string frozen_path = out.path() + "/study.toml";
  if (!fs::exists(frozen_path) || read_file(frozen_path) == study.text) return;
  const Study frozen = read_study(frozen_path, {});
  const std::vector<std::string> ours = fingerprints(study), theirs = fingerprints(frozen);
  const bool contained = std::includes(ours.begin(), ours.end(), theirs.begin(), theirs.end());
  if (ours == theirs || (extend && contained)) return;
  throw ConfigError(fmt::format(
      "{} holds another study ({}, this one has {}; see {}): {}: choose another --out{}", out.path(),
      counted(theirs.size(), "run"), ours.size(), frozen_path, first_difference(frozen, study),
      !contained ? "" : ", or --extend to add this study's further runs to it"));
}

void require_same_data(const SweepPaths& out, const std::vector<Cell>& cells) {
  std::map<std::string, std::optional<DataAttributes>> known;  // by the options that choose the data
  for (const Cell& cell : cells) {
    const std::string folder = out.tuning_folder(cell.run_id);
    const std::optional<DataAttributes> then = data_of_done_run(folder, cell.run_id);
    if (!then) continue;
    const std::string key = view_of(cell.options.data).to_toml();
    if (!known.count(key)) known[key] = data_now(cell.options.data);
    if (const std::optional<DataAttributes>& now = known.at(key))
      check_same_data(folder + "/run.h5", *then, *now);
  }
}

std::optional<FileLock> common_lock(const std::string& path, bool make) {
  const std::string file = path + "/common.lock";
  if (!make && !fs::exists(file)) return std::nullopt;
  for (;;) {
    if (std::optional<FileLock> lock = FileLock::attempt(file)) return lock;
    throw_if_interrupted();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

SweepFolder::SweepFolder(const std::string& path, FolderUse use)
    : SweepPaths(made(path)),
      lock_(use == FolderUse::alone ? FileLock(path + "/lock", path)
                                    : FileLock::share(path + "/lock", path)) {}

void SweepFolder::freeze(const Study& study) {
  const std::string file = path() + "/study.toml";
  // Replaced only for a reason: another host may be reading it.
  if (!fs::exists(file) || read_file(file) != study.text) write_file_atomically(file, study.text);
}

void SweepFolder::keep_chosen(const std::set<std::string>& run_ids,
                              const std::set<std::string>& tuning_ids) const {
  make_folders(path() + "/tuning");
  for (const std::string& run_id : run_ids) {
    const std::string tuned = path() + "/tuning/" + run_id;
    if (fs::exists(tuned) && !fs::exists(run_folder(run_id))) fs::rename(tuned, run_folder(run_id));
  }
  for (const std::string& run_id : tuning_ids) {
    if (!run_ids.count(run_id) && fs::exists(run_folder(run_id))) {
      fs::rename(run_folder(run_id), path() + "/tuning/" + run_id);
    }
  }
}

}  // namespace basin
