#include <CLI/CLI.hpp>

#include <filesystem>
#include <iostream>

#include "apps/arguments.h"
#include "apps/output/probe_display.h"
#include "apps/subcommands.h"
#include "core/error.h"
#include "io/status_file.h"
#include "ranks/command_ranks.h"
#include "runs/folder.h"
#include "runs/outcome_text.h"
#include "runs/probing.h"
#include "runs/train.h"
#include "study/study.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

struct TrainArguments {
  std::string study, out;
  std::vector<std::string> sets;
  bool print_config = false, probe = false;
  int ranks = 1;
};

// The study's rules hold for a single run too: it gets the rate that
// was tuned for LAMB at this batch size, say.
RunOptions first_cell(const TrainArguments& arguments) {
  const Study study = read_study(arguments.study, arguments.sets);
  const std::vector<Cell> cells = expand(study);
  if (cells.empty())
    throw ConfigError(arguments.study + ": [[sweep.skip]] leaves no run that agrees with these --set");
  if (study.tuning.sampled && !cells.front().candidate.values.empty() && !arguments.print_config) {
    throw ConfigError(
        fmt::format("{}: learning_rate = \"tuned\", but no value is chosen for {} yet: use --set "
                    "learning_rate=... or sweep.selection",
                    arguments.study, cells.front().group));
  }
  if (cells.size() > 1 && !arguments.print_config) {
    fmt::print(stderr, "{}: the first of {} runs, {}\n", arguments.study, cells.size(), cells.front().label);
  }
  return cells.front().options;
}

int run_train(const TrainArguments& arguments) {
  RunOptions options = first_cell(arguments);
  if (arguments.print_config) {
    std::cout << options.table().to_toml_with_help();
    return 0;
  }
  check(options);
  const std::string out =
      arguments.out.empty() ? "out/" + fs::path(arguments.study).stem().string() + "-train" : arguments.out;
  const std::string folder = run_folder(out, options);
  require_inputs(options);
  CommandRanks ranks(arguments.ranks);
  return ranks.run([&] {
    const RunState state = train_run(options, folder, ranks.group());
    if (ranks.is_first())
      fmt::print("{} {}{}\n", folder, to_string(state),
                 outcome_text(folder, read_status(folder + "/status.json")));
    const RankGroup* const rest = ranks.going_on();
    if (!arguments.probe || !rest) return 0;
    ProbeDisplay display;
    const auto show = [&](const ProbeStep& step) {
      if (options.runtime.progress) display.show(step);
    };
    probe_run(folder, {options.probes, options.probe_options, options.runtime, false}, show, *rest);
    return 0;
  });
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = app.add_subcommand("train", "Train one run of a study, or resume it");
  command
      ->add_option("study", arguments->study,
                   "study file (TOML); trains its first run that agrees with --set")
      ->required();
  command->add_option("--out", arguments->out,
                      "folder for runs/<run_id>; default: out/<name of the study>-train");
  add_set_option(*command, arguments->sets);
  command->add_flag("--print-config", arguments->print_config,
                    "print all options with their meaning and exit");
  add_ranks_option(*command, arguments->ranks);
  command->add_flag("--probe", arguments->probe, "afterwards run the study's [probes] on the checkpoints");
  command->callback([arguments, &action] { action = [arguments] { return run_train(*arguments); }; });
}

}  // namespace basin
