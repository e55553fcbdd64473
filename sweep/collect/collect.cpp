#include "sweep/collect/collect.h"

#include <filesystem>

#include "core/error.h"
#include "core/files.h"
#include "runs/folder.h"
#include "study/study.h"
#include "sweep/collect/file.h"
#include "sweep/collect/merge.h"
#include "sweep/collect/merge_registration.h"
#include "sweep/collect/table.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

// A sweep's own sweep.h5 is of its own runs.
void require_room(const std::vector<std::string>& folders, const std::string& out) {
  std::error_code missing;
  if (!is_sweep_folder(out) || (folders.size() == 1 && fs::equivalent(folders.front(), out, missing))) return;
  throw ConfigError(out + ": has runs of its own; choose another --out");
}

// The study was read before, so it can be read.
std::vector<std::string> axes_of(const std::string& study) {
  std::vector<std::string> keys;
  for (const Axis& axis : parse_study(study, "study.toml", {}).axes) keys.push_back(axis.key);
  return keys;
}

Registration registration_of(const std::vector<SweepSource>& sources) {
  std::vector<RegisteredSource> registered;
  for (const SweepSource& source : sources) {
    const bool began = std::any_of(source.rows.begin(), source.rows.end(),
                                   [](const SweepRow& row) { return row.state() != RunState::queued; });
    registered.push_back({source.folder, read_registration(SweepPaths(source.folder)), began});
  }
  return merged_registration(registered);
}

}  // namespace

std::string collect(const std::vector<std::string>& folders, const std::string& out) {
  require_room(folders, out);
  std::vector<SweepSource> sources;
  for (const std::string& folder : folders) {
    const std::string study = folder + "/study.toml";
    sources.push_back({folder, fs::exists(study) ? read_file(study) : "", read_sweep_rows(folder)});
  }
  std::vector<SourceEntry> entries;
  for (const SweepSource& source : sources)
    entries.push_back({source.folder, source.study, static_cast<int64_t>(source.rows.size())});
  std::vector<std::string> axes;
  if (!entries.empty() && !entries.front().study.empty()) axes = axes_of(entries.front().study);
  const bool into_another = !is_sweep_folder(out);  // a sweep's own registration is the sweep's to write
  const Registration registration = into_another ? registration_of(sources) : Registration();
  const std::vector<SweepRow> rows = merged(std::move(sources));
  make_folders(out);
  if (into_another) write_registration(SweepPaths(out), registration);
  write_sweep_file(out + "/sweep.h5", entries, rows);
  const std::string table = table_markdown(rows, axes);
  write_file_atomically(out + "/table.md", table);
  return table;
}

std::string collect(const std::string& folder) { return collect({folder}, folder); }

}  // namespace basin
