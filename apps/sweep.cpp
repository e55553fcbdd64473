#include <CLI/CLI.hpp>

#include "apps/study_command.h"
#include "apps/subcommands.h"

namespace basin {

void add_sweep(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<StudyArguments>();
  CLI::App* command = app.add_subcommand("sweep", "Train and probe every run of a study, or resume it");
  add_study_options(*command, *arguments);
  command->add_flag("--no-probes", arguments->no_probes,
                    "train only; run the sweep again without this flag to probe");
  CLI::Option* const shard = command->add_option(
      "--shard", arguments->shard, "I/N: the I-th of N parts of the runs; other processes make the others");
  command->add_option("--cell", arguments->cell, "the run with this number in the list of --dry-run, from 1")
      ->check(CLI::PositiveNumber)
      ->excludes(shard);
  command->add_option(
      "--selection", arguments->selection,
      "selection.toml of an earlier `basin tune`, whose winners replace learning_rate = \"tuned\"");
  command
      ->add_option("--pilot", arguments->pilot,
                   "folder of an earlier sweep with verdicts.h5: --dry-run then says how many seeds resolve "
                   "each margin")
      ->needs(command->get_option("--dry-run"));
  command->callback([arguments, &action] { action = [arguments] { return run_study_command(*arguments); }; });
}

}  // namespace basin
