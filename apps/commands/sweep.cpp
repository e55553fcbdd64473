#include <CLI/CLI.hpp>

#include "apps/arguments.h"
#include "apps/study_command.h"
#include "apps/subcommands.h"

namespace basin {
namespace {

void add_launch_options(CLI::App& command, StudyArguments& arguments) {
  CLI::Option* const launch = command.add_option(
      "--launch", arguments.launch, "submit the runs as jobs and show how they stand (docs/cluster.md)");
  take_one_of(*launch, "scheduler", {"slurm"});
  for (const char* alone : {"--shard", "--cell", "--fail-fast", "--json"})
    launch->excludes(command.get_option(alone));
  command
      .add_option("--slurm", arguments.sbatch,
                  "an option of sbatch, e.g. --slurm partition=gpu --slurm gpus-per-task=1; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE")
      ->needs(launch);
  take_at_least_zero(
      *command
           .add_option("--task-minutes", arguments.task_minutes,
                       "how much work a task should have at least, in minutes; 0: one run each")
           ->capture_default_str()
           ->needs(launch));
  CLI::Option* const detach = command.add_flag("--detach", arguments.detach, "submit, and show nothing");
  CLI::Option* const cancel =
      command.add_flag("--cancel", arguments.cancel, "take the jobs out of the queue and end those that run");
  CLI::Option* const dry_run = command.get_option("--dry-run");
  detach->needs(launch)->excludes(dry_run);
  cancel->needs(launch)->excludes(detach)->excludes(dry_run);
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<StudyArguments>();
  CLI::App* command = app.add_subcommand("sweep", "Train and probe every run of a study, or resume it");
  add_study_options(*command, *arguments);
  command->add_flag("--no-probes", arguments->no_probes,
                    "train only; run the sweep again without this flag to probe");
  CLI::Option* const shard = command->add_option(
      "--shard", arguments->shard, "I/N: the I-th of N parts of the runs; other processes make the others");
  take_above_zero(*command
                       ->add_option("--cell", arguments->cell,
                                    "the run with this number in the list of --dry-run, from 1")
                       ->excludes(shard));
  take_above_zero(*command
                       ->add_option("--stage", arguments->stage,
                                    "of --shard: the runs of one stage, from 1: a rung of the tuning, the "
                                    "sweep, its branches, theirs")
                       ->needs(shard));
  command->add_option(
      "--selection", arguments->selection,
      "selection.toml of an earlier `basin tune`, whose winners replace learning_rate = \"tuned\"");
  command
      ->add_option("--pilot", arguments->pilot,
                   "folder of an earlier sweep with verdicts.h5: --dry-run then says how many seeds resolve "
                   "each margin")
      ->needs(command->get_option("--dry-run"));
  add_launch_options(*command, *arguments);
  command->callback([arguments, &action] { action = [arguments] { return run_study_command(*arguments); }; });
}

}  // namespace basin
