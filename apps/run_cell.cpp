#include "apps/run_cell.h"

#include <CLI/CLI.hpp>

#include "apps/cost_model.h"
#include "apps/probe_plan_text.h"
#include "apps/probing.h"
#include "apps/train.h"
#include "core/files.h"
#include "core/hash.h"
#include "probes/registry.h"

namespace basin {
namespace {

std::string done_path(const std::string& folder) { return folder + "/probes/done"; }

// What decides a probe's numbers beside the checkpoint.
std::string probe_settings_hash(const RunOptions& options) {
  std::string text = probe_plan_text(options);
  for (const std::string& probe : options.probes.run) {
    text += fmt::format("{} {}\n", probe, find_entry(probe_registry(), probe, "probe").version);
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

int probe_cell(const std::string& folder, const RunOptions& options) {
  if (options.probes.run.empty()) return 0;
  const std::vector<ProbeOutcome> outcomes =
      probe_run(folder, {options.probes, options.probe_options, options.runtime, false});
  int exit_code = 0;
  for (const ProbeOutcome& outcome : outcomes) {
    if (outcome.status != "failed") continue;
    fmt::print(stderr, "probe {} on {} failed: {}\n", outcome.probe, outcome.checkpoint, outcome.message);
    exit_code = kProbesFailed;
  }
  if (exit_code == 0) note_probes_done(folder, options, outcomes);
  return exit_code;
}

}  // namespace

std::string cell_path(const std::string& folder) { return folder + "/cell.toml"; }

void write_cell_file(const std::string& folder, const RunOptions& options) {
  RunOptions copy = options;
  write_file_atomically(cell_path(folder), copy.table().to_toml());
}

void note_probes_done(const std::string& folder, const RunOptions& options, const std::vector<ProbeOutcome>& outcomes) {
  std::string text = probe_settings_hash(options) + "\n";
  for (const ProbeOutcome& outcome : outcomes) {
    text += std::filesystem::path(outcome.path).filename().string() + "\n";
  }
  make_folders(folder + "/probes");
  write_file_atomically(done_path(folder), text);
}

bool probes_done(const std::string& folder, const RunOptions& options) {
  if (options.probes.run.empty()) return true;
  std::ifstream done(done_path(folder));
  std::string line;
  if (!std::getline(done, line) || line != probe_settings_hash(options)) return false;
  while (std::getline(done, line)) {
    if (!std::filesystem::exists(folder + "/probes/" + line)) return false;
  }
  return !has_checkpoint_since(folder, done_path(folder));
}

void add_worker_subcommands(CLI::App& app, Action& action) {
  CLI::App* cell = app.add_subcommand("run-cell", "a sweep's worker")->group("");
  auto folder = std::make_shared<std::string>();
  auto no_probes = std::make_shared<bool>(false);
  cell->add_option("folder", *folder)->required();
  cell->add_flag("--no-probes", *no_probes);
  cell->callback([&action, folder, no_probes] {
    action = [folder, no_probes] {
      const RunOptions options = load_run_options(cell_path(*folder), {});
      train_run(options, *folder);
      return *no_probes ? 0 : probe_cell(*folder, options);
    };
  });
  CLI::App* timing = app.add_subcommand("time-cell", "a sweep's micro-benchmark")->group("");
  auto batches = std::make_shared<std::vector<int64_t>>();
  timing->add_option("folder", *folder)->required();
  timing->add_option("batches", *batches)->required();
  timing->callback([&action, folder, batches] {
    action = [folder, batches] {
      const CellSpeed speed = measure_speed(load_run_options(cell_path(*folder), {}), *batches, *folder);
      write_file_atomically(*folder + "/speed.toml", to_toml(speed));
      return 0;
    };
  });
}

}  // namespace basin
