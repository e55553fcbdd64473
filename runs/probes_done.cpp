#include "runs/probes_done.h"

#include <filesystem>
#include <fstream>

#include "core/files.h"
#include "core/hash.h"
#include "probes/registry.h"
#include "study/probe_plan_text.h"

namespace basin {
namespace {

std::string done_path(const std::string& folder) { return folder + "/probes/done"; }
std::string failed_path(const std::string& folder) { return folder + "/probes/failed"; }

// What decides a probe's numbers besides the checkpoint.
std::string probe_settings_hash(const RunOptions& options) {
  std::string text = probe_plan_text(options);
  for (const std::string& probe : options.probes.run) {
    text += fmt::format("{} {}\n", probe, find_entry(probe_registry(), probe, "probe").version);
  }
  for (const std::string& probe : options.probes.twin) {
    text += fmt::format("twin {} {}\n", probe, find_entry(probe_registry(), probe, "probe").version);
  }
  return sha256_hex(text);
}

// A checkpoint written after the probes were done may be another one: the worker compares its content.
bool has_checkpoint_since(const std::string& folder, const std::string& done) {
  if (!std::filesystem::is_directory(folder + "/ckpt")) return true;
  const auto then = std::filesystem::last_write_time(done);
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/ckpt")) {
    const std::string label = entry.path().stem();
    if (label != "latest" && label != "previous" && entry.last_write_time() > then) return true;
  }
  return false;
}

}  // namespace

void note_probes_done(const std::string& folder, const RunOptions& options,
                      const std::vector<ProbeOutcome>& outcomes) {
  std::string text = probe_settings_hash(options) + "\n";
  for (const ProbeOutcome& outcome : outcomes) {
    text += std::filesystem::path(outcome.path).filename().string() + "\n";
  }
  make_folders(folder + "/probes");
  write_file_atomically(done_path(folder), text);
  std::filesystem::remove(failed_path(folder));
}

void note_probes_failed(const std::string& folder, const std::string& reason) {
  make_folders(folder + "/probes");
  write_file_atomically(failed_path(folder), reason + "\n");
}

bool probes_failed(const std::string& folder) { return std::filesystem::exists(failed_path(folder)); }

bool probes_done(const std::string& folder, const RunOptions& options) {
  if (options.probes.run.empty() && options.probes.twin.empty()) return true;
  std::ifstream done(done_path(folder));
  std::string line;
  if (!std::getline(done, line) || line != probe_settings_hash(options)) return false;
  while (std::getline(done, line)) {
    if (!std::filesystem::exists(fmt::format("{}/probes/{}", folder, line))) return false;
  }
  return !has_checkpoint_since(folder, done_path(folder));
}

}  // namespace basin
