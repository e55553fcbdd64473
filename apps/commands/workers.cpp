#include <CLI/CLI.hpp>

#include "apps/subcommands.h"
#include "core/files.h"
#include "ranks/command_ranks.h"
#include "runs/folder.h"
#include "runs/parts.h"
#include "runs/probes_done.h"
#include "runs/train.h"
#include "sweep/measure_speed.h"

namespace basin {
namespace {

int probe_cell(const std::string& folder, const RunOptions& options, const RankGroup& ranks) {
  if (options.probes.run.empty() && options.probes.twin.empty()) return 0;
  const std::vector<ProbeOutcome> outcomes = probe_run(
      folder, {options.probes, options.probe_options, options.runtime, false},
      [&](const ProbeStep& step) { write_probe_progress(folder, step); }, ranks);
  if (!ranks.is_first()) return 0;
  remove_probe_progress(folder);
  int exit_code = 0;
  for (const ProbeOutcome& outcome : outcomes) {
    if (outcome.status != ProbeStatus::failed) continue;
    fmt::print(stderr, "probe {} on {} failed: {}\n", outcome.probe, outcome.checkpoint, outcome.message);
    exit_code = 1;
  }
  if (exit_code == 0) note_probes_done(folder, options, outcomes);
  return exit_code;
}

/// As many of the ranks asked for as can share the run's batch.
int run_cell(const std::string& folder, int asked, bool probes) {
  const RunOptions options = load_run_options(cell_path(folder), {});
  CommandRanks ranks(static_cast<int>(std::min<int64_t>(asked, most_ranks(options))), Whose::this_programs);
  return ranks.run([&] {
    train_run(options, folder, ranks.group());
    const RankGroup* const rest = ranks.going_on();
    return probes && rest ? probe_cell(folder, options, *rest) : 0;
  });
}

}  // namespace

void add_workers(CLI::App& app, Action& action) {
  CLI::App* cell = app.add_subcommand("run-cell", "a sweep's worker")->group("");
  auto folder = std::make_shared<std::string>();
  auto no_probes = std::make_shared<bool>(false);
  cell->add_option("folder", *folder)->required();
  auto ranks = std::make_shared<int>(1);
  cell->add_flag("--no-probes", *no_probes);
  cell->add_option("--ranks", *ranks);
  cell->callback([&action, folder, no_probes, ranks] {
    action = [folder, no_probes, ranks] { return run_cell(*folder, *ranks, !*no_probes); };
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
