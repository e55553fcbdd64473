#include <CLI/CLI.hpp>

#include <filesystem>

#include "apps/arguments.h"
#include "apps/command_line.h"
#include "apps/subcommands.h"
#include "core/error.h"
#include "runs/checkpoints.h"
#include "runs/surfaces/run.h"

namespace basin {
namespace {

struct LandscapeArguments {
  std::vector<std::string> checkpoints, sets;
  std::string kind, out, retry;
  int64_t jobs = 1;
  bool force = false, worker = false, print_config = false;
};

// The folder of a run stands for the run's last checkpoint.
std::string checkpoint_file(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return path;
  const std::string end = checkpoint_path(path, "end");
  if (std::filesystem::exists(end)) return end;
  throw IoError(path + ": no ckpt/end.h5; name a checkpoint file");
}

LandscapeRequest request_of(const LandscapeArguments& arguments) {
  LandscapeRequest request;
  request.kinds = OptionSets(landscape_kinds());
  request.kind = arguments.kind;
  request.out = arguments.out;
  request.jobs = arguments.jobs;
  request.force = arguments.force;
  request.retry_failed = !arguments.retry.empty();
  request.worker = arguments.worker;
  return request;
}

/// [landscape], the kind's own table and [runtime].
OptionTable table_of(LandscapeRequest& request) {
  OptionTable table;
  table.group("landscape", [&](OptionTable& t) { bind_options(t, request.landscape); });
  request.kinds.bind_only(table, request.kind);
  table.group("runtime", [&](OptionTable& t) { bind_options(t, request.runtime); });
  return table;
}

/// What `--set` may have, for all kinds together.
std::vector<std::string> known_settings() {
  LandscapeRequest request = request_of({});
  OptionTable table = table_of(request);
  request.kinds.bind(table);
  return settings_of(table);
}

// The arguments of a worker: the same, with every option given.
std::vector<std::string> worker_arguments(const LandscapeArguments& arguments) {
  std::vector<std::string> words = {"landscape"};
  words.insert(words.end(), arguments.checkpoints.begin(), arguments.checkpoints.end());
  words.insert(words.end(), {"--kind", arguments.kind, "--worker", "--set", "runtime.threads=1"});
  if (!arguments.out.empty()) words.insert(words.end(), {"--out", arguments.out});
  for (const std::string& set : arguments.sets) words.insert(words.end(), {"--set", set});
  return words;
}

int landscape(const LandscapeArguments& arguments) {
  LandscapeRequest request = request_of(arguments);
  OptionTable table = table_of(request);
  for (const std::string& set : arguments.sets) table.set_from_text(set, "--set");
  if (arguments.print_config) {
    fmt::print("{}", table.to_toml_with_help());
    return 0;
  }
  if (arguments.checkpoints.empty())
    throw ConfigError("landscape: name a checkpoint, or the folder of a run");
  for (const std::string& path : arguments.checkpoints) request.files.push_back(checkpoint_file(path));
  request.worker_program = this_program();
  request.worker_arguments = worker_arguments(arguments);
  return run_landscape(request);
}

}  // namespace

void add_landscape(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<LandscapeArguments>();
  CLI::App* command =
      app.add_subcommand("landscape", "Measure the loss along lines and over planes in weight space");
  command->add_option(
      "checkpoint", arguments->checkpoints,
      "checkpoints of one network, RUN/ckpt/<label>.h5, or folders of runs for their last ones");
  const std::vector<std::string> kinds = names_of(landscape_kinds());
  take_one_of(
      *command->add_option("--kind", arguments->kind, fmt::format("{}", fmt::join(kinds, ", ")))->required(),
      "kind of landscape", kinds);
  command->add_option("--out", arguments->out, "file; default OUT/landscape/<kind>.<run_id>.<label>.h5");
  command
      ->add_option("--jobs", arguments->jobs,
                   "number of processes, each with runtime.threads threads (by default one)")
      ->check(CLI::Range(1, 4096));
  command->add_flag("--force", arguments->force,
                    "measure again and replace existing files, whatever their settings");
  take_one_of(*command->add_option("--retry", arguments->retry, "which points to measure again: failed"),
              "state", {"failed"});
  command->add_flag("--print-config", arguments->print_config,
                    "print the kind's options with their meaning and exit");
  command->add_flag("--worker", arguments->worker)->group("");  // what --jobs starts
  add_set_option(*command, arguments->sets, known_settings);
  command->callback([arguments, &action] { action = [arguments] { return landscape(*arguments); }; });
}

}  // namespace basin
