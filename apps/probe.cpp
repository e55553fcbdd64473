#include <CLI/CLI.hpp>

#include <iostream>

#include "apps/arguments.h"
#include "apps/subcommands.h"
#include "core/error.h"
#include "io/probe_file.h"
#include "probes/registry.h"
#include "runs/folder.h"
#include "runs/probing.h"

namespace basin {
namespace {

struct ProbeArguments {
  std::string folder;
  std::vector<std::string> only, checkpoints, sets;
  std::optional<int64_t> subset, micro_batch;
  std::optional<std::string> dtype, solver;
  bool force = false;
};

// A probe measures a run as it is: only tables of probes, [probes] and [runtime] may be set.
void refuse_run_keys(const std::vector<std::string>& sets) {
  RunOptions options;
  OptionTable allowed;
  options.probe_options.bind(allowed);
  allowed.group("probes", [&](OptionTable& t) { bind_options(t, options.probes); });
  allowed.group("runtime", [&](OptionTable& t) { bind_options(t, options.runtime); });
  for (const std::string& set : sets) allowed.set_from_text(set, "--set");
}

// As the run's study has them, or every probe with default settings at the end.
RunOptions default_options(const std::string& run_folder) {
  if (std::optional<RunOptions> study = study_options(run_folder)) {
    if (study->probes.run.empty()) study->probes.run = names_of(probe_registry());
    return *std::move(study);
  }
  RunOptions options;
  options.probes.run = names_of(probe_registry());
  options.probes.at = {"end"};
  return options;
}

bool is_set(const std::string& key, const std::vector<std::string>& sets) {
  return std::any_of(sets.begin(), sets.end(), [&](const std::string& set) {
    return set.rfind(key, 0) == 0 && set.find_first_of(" =", key.size()) == key.size();
  });
}

// A tool's variant asked for by hand has that tool's values and what else is set by hand: a study's own, all
// of which cell.toml spells out, would leave it nothing.
void make_room_for_variants(const std::vector<std::string>& sets, OptionSets& probe_options) {
  OptionSets kept;
  for (const ProbeEntry& entry : probe_registry()) {
    const OptionView options = probe_options.at(entry.name).view(entry.name);
    const bool asked = std::any_of(options.begin(), options.end(), [&](const Option& option) {
      return option.traits.is_preset && is_set(option.key, sets);
    });
    kept.add(entry.name, asked ? entry.make_options() : probe_options.at(entry.name).clone());
  }
  probe_options = std::move(kept);
}

ProbeRequest request_of(const ProbeArguments& arguments) {
  refuse_run_keys(arguments.sets);
  RunOptions options = default_options(arguments.folder);
  make_room_for_variants(arguments.sets, options.probe_options);
  OptionTable table = options.table();
  for (const std::string& set : arguments.sets) table.set_from_text(set, "--set");
  if (!arguments.only.empty()) table.set("probes.run", arguments.only, "--only");
  if (!arguments.checkpoints.empty()) table.set("probes.at", arguments.checkpoints, "--checkpoint");
  if (arguments.subset) table.set("probes.subset", *arguments.subset, "--subset");
  if (arguments.micro_batch) table.set("probes.micro_batch", *arguments.micro_batch, "--micro-batch");
  if (arguments.dtype) table.set("probes.dtype", *arguments.dtype, "--dtype");
  if (arguments.solver) table.set("top_eigenvalues.solver", *arguments.solver, "--solver");
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

int run_probe(const ProbeArguments& arguments) {
  const std::vector<ProbeOutcome> outcomes = probe_run(arguments.folder, request_of(arguments));
  if (outcomes.empty())
    throw ConfigError(arguments.folder + ": no checkpoint of that name; see its folder ckpt/");
  bool failed = false;
  for (const ProbeOutcome& outcome : outcomes) {
    print_outcome(outcome);
    failed = failed || outcome.status == ProbeStatus::failed;
  }
  return failed ? 1 : 0;
}

}  // namespace

void add_probe(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<ProbeArguments>();
  CLI::App* command = app.add_subcommand("probe", "Measure checkpoints of a run, old ones too");
  command->add_option("run", arguments->folder, "folder of the run, OUT/runs/<run_id>")->required();
  add_list_option(*command, "--only", arguments->only, "probes, by name; default: the study's, or all");
  add_list_option(*command, "--checkpoint", arguments->checkpoints,
                  "end, start, loss, every, all, or labels; default: the study's, or end");
  command->add_option("--subset", arguments->subset,
                      "training examples, chosen by image hash; 0: all; default: the study's, or 1000");
  command->add_option("--micro-batch", arguments->micro_batch, "examples per pass; memory alone");
  command->add_option("--dtype", arguments->dtype, "float32 or float64");
  command->add_option("--solver", arguments->solver,
                      "of top_eigenvalues: lanczos, or spectra as the reference");
  command->add_flag("--force", arguments->force, "measure again what was measured with the same settings");
  add_set_option(*command, arguments->sets);
  command->callback([arguments, &action] { action = [arguments] { return run_probe(*arguments); }; });
}

}  // namespace basin
