#include <CLI/CLI.hpp>

#include "apps/arguments.h"
#include "apps/output/json_output.h"
#include "apps/output/probe_display.h"
#include "apps/subcommands.h"
#include "core/error.h"
#include "core/nearest.h"
#include "io/probe_file.h"
#include "ranks/command_ranks.h"
#include "runs/checkpoints.h"
#include "runs/probe_options.h"
#include "runs/probing.h"
#include "runs/script_subject.h"
#include "study/checkpoint_names.h"

namespace basin {
namespace {

struct ProbeArguments {
  std::string folder, out;
  ScriptSubject subject;
  std::vector<std::string> only, checkpoints, sets;
  std::optional<int64_t> subset, micro_batch;
  std::optional<std::string> dtype;
  bool force = false, json = false;
  int ranks = 1;
};

ProbeRequest request_of(const ProbeArguments& arguments) {
  RunOptions options = options_to_probe(arguments.folder, arguments.sets);
  OptionTable table = options.table();
  if (!arguments.only.empty()) table.set("probes.run", arguments.only, "--only");
  if (!arguments.checkpoints.empty()) table.set("probes.at", arguments.checkpoints, "--checkpoint");
  if (arguments.subset) table.set("probes.subset", *arguments.subset, "--subset");
  if (arguments.micro_batch) table.set("probes.micro_batch", *arguments.micro_batch, "--micro-batch");
  if (arguments.dtype) table.set("probes.dtype", *arguments.dtype, "--dtype");
  return {options.probes, options.probe_options, options.runtime, arguments.force};
}

void print_outcome(const ProbeOutcome& outcome) {
  fmt::print("{}  {}  {}{}{}\n", outcome.checkpoint, outcome.probe, to_string(outcome.status),
             outcome.message.empty() ? "" : ": " + outcome.message,
             outcome.skipped ? "  (measured before)" : "");
  const std::string file = std::filesystem::path(outcome.path).filename();
  fmt::print("  in probes/{}\n", file);
  for (const Quantity& quantity : read_probe_file(outcome.path).quantities) {
    for (size_t i = 0; i < quantity.value.size(); ++i) {
      const ProbeStatus status = quantity.status_of(i);
      const double uncertainty = i < quantity.uncertainty.size() ? quantity.uncertainty[i] : NAN;
      const bool has_uncertainty = quantity.uncertainty_kind != UncertaintyKind::none;
      fmt::print("  {:<34} {:>14.6g}  {:<15} {}", entry_name(quantity.name, quantity.is_vector, i),
                 quantity.value[i], has_uncertainty ? fmt::format("+- {:.3g}", uncertainty) : "",
                 quantity.units);
      std::vector<std::string> remarks;
      if (has_uncertainty) remarks.emplace_back(to_string(quantity.uncertainty_kind));
      if (status != ProbeStatus::ok) remarks.emplace_back(to_string(status));
      fmt::print("{}\n", remarks.empty() ? "" : fmt::format(" ({})", fmt::join(remarks, ", ")));
    }
  }
}

/// Each thing that was asked for has a checkpoint.
void check_checkpoints(const ProbeArguments& arguments) {
  for (const std::string& asked : arguments.checkpoints) {
    if (!chosen_labels(arguments.folder, {asked}).empty()) continue;
    throw ConfigError(arguments.folder + ": " +
                      unknown_name("checkpoint", asked, checkpoint_labels(arguments.folder)));
  }
}

Json answer_of(const ProbeOutcome& outcome) {
  const ProbeRecord record = read_probe_file(outcome.path);
  Json found = json_of(record);
  found["file"] = outcome.path;
  found["measured_before"] = outcome.skipped;
  return found;
}

std::vector<ProbeOutcome> measured(const ProbeArguments& arguments, const RankGroup& ranks) {
  ProbeDisplay display;
  return probe_run(
      arguments.folder, request_of(arguments), [&](const ProbeStep& step) { display.show(step); }, ranks);
}

/// With --script the folder of a run that is made of it.
ProbeArguments resolved(ProbeArguments arguments) {
  const bool script = !arguments.subject.script.empty();
  if (script == !arguments.folder.empty())
    throw ConfigError(script ? "a run and --script: one of them is measured at a time"
                             : "nothing to measure: name a run, or --script and --data");
  if (!script && !(arguments.subject.data.empty() && arguments.out.empty() && arguments.subject.classes == 0))
    throw ConfigError("--data, --classes and --out go with --script; a run has its own");
  if (!script) return arguments;
  if (arguments.subject.data.empty())
    throw ConfigError(
        "--script needs --data: examples as set = \"arrays\" reads them, or a set that comes with Basin");
  const std::string stem = std::filesystem::path(arguments.subject.script).stem();
  arguments.folder =
      write_script_subject(arguments.subject, arguments.out.empty() ? "out/" + stem : arguments.out);
  return arguments;
}

int run_probe(const ProbeArguments& given) {
  CommandRanks ranks(given.ranks);
  ProbeArguments arguments = given;
  const std::vector<ProbeOutcome> outcomes = ranks.run([&] {
    if (ranks.is_first()) arguments = resolved(given);
    arguments.folder = ranks.group().broadcast(arguments.folder);
    if (ranks.is_first()) check_checkpoints(arguments);
    return measured(arguments, ranks.group());
  });
  if (!ranks.is_first()) return 0;
  if (outcomes.empty())
    throw ConfigError(fmt::format("{}: no such checkpoint; known: {}", arguments.folder,
                                  fmt::join(checkpoint_labels(arguments.folder), ", ")));
  std::vector<std::string> failed;
  Json results = Json::array();
  for (const ProbeOutcome& outcome : outcomes) {
    if (arguments.json)
      results.push_back(answer_of(outcome));
    else
      print_outcome(outcome);
    if (outcome.status == ProbeStatus::failed) failed.push_back(outcome.checkpoint + " " + outcome.probe);
  }
  if (!arguments.json && !given.subject.script.empty()) fmt::print("all in {}\n", arguments.folder);
  if (arguments.json) print_json("probe", {{"run", arguments.folder}, {"results", std::move(results)}});
  if (failed.empty()) return 0;
  throw Error(1, fmt::format("{}: failed: {}", arguments.folder, fmt::join(failed, ", ")));
}

}  // namespace

void add_probe(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<ProbeArguments>();
  CLI::App* command = app.add_subcommand("probe", "Measure checkpoints of a run, at any time after training");
  command->add_option("run", arguments->folder, "folder of the run, OUT/runs/<run_id>");
  command->add_option(
      "--script", arguments->subject.script,
      "in place of a run: the weights of a TorchScript file as they are (docs/your-network.md)");
  command->add_option(
      "--data", arguments->subject.data,
      "with --script: a .npz, a folder of .npy, an HDF5 file, or a set that comes with Basin");
  take_one_of(*command->add_option("--loss", arguments->subject.loss, "with --script"), "loss",
              values_of("loss"));
  take_above_zero(*command->add_option(
      "--classes", arguments->subject.classes,
      "with --script and arrays: number of classes, where the largest don't occur in them"));
  command->add_option("--out", arguments->out,
                      "with --script: folder of the results; default: out/NAME of the file NAME.pt");
  add_list_option(*command, "--only", arguments->only, "names of probes; default: the study's, or all",
                  [] { return values_of("probes.run"); });
  add_list_option(*command, "--checkpoint", arguments->checkpoints,
                  "checkpoints: end, start, loss, every, all, or labels; default: the study's, or end",
                  checkpoint_words);
  command->add_option(
      "--subset", arguments->subset,
      "number of training examples, chosen by image hash; 0: all; default: the study's, or 1000");
  command->add_option("--micro-batch", arguments->micro_batch,
                      "examples per pass; affects memory, not results");
  offer(*command->add_option("--dtype", arguments->dtype, "float32 or float64"), Offer::one,
        [] { return values_of("probes.dtype"); });
  command->add_flag("--force", arguments->force, "repeat measurements that were made with the same settings");
  add_ranks_option(*command, arguments->ranks);
  add_json_flag(*command, arguments->json);
  add_set_option(*command, arguments->sets);
  command->callback([arguments, &action] { action = [arguments] { return run_probe(*arguments); }; });
}

}  // namespace basin
