#include <CLI/CLI.hpp>

#include "apps/study_command.h"
#include "apps/subcommands.h"

namespace basin {

void add_tune(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<StudyArguments>();
  arguments->tuning_alone = true;
  CLI::App* command = app.add_subcommand(
      "tune",
      "Search a study's learning rates, and whatever else [tune] names, with an equal budget for each group, "
      "or resume the search; writes OUT/tune.h5 and OUT/selection.toml");
  add_study_options(*command, *arguments);
  command->callback([arguments, &action] { action = [arguments] { return run_study_command(*arguments); }; });
}

}  // namespace basin
