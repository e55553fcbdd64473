#include <unistd.h>

#include <CLI/CLI.hpp>

#include <functional>
#include <utility>

#include "apps/arguments.h"
#include "apps/output/json_output.h"
#include "apps/subcommands.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "core/runtime.h"
#include "runs/outside_probing.h"
#include "runs/probe_options.h"
#include "runs/surfaces/outside.h"
#include "runs/surfaces/registry.h"

namespace basin {
namespace {

struct MeasureArguments {
  int words = -1, memory = -1;
  std::string out, landscape;
  std::vector<std::string> only, sets;
  double silence = 60;
  uint64_t seed = 1;
};

RunOptions options_of(const MeasureArguments& arguments) {
  for (const std::string& set : arguments.sets)
    if (set.rfind("probes.", 0) == 0)
      throw ConfigError("--set " + set + ": examples and type are those of the problem");
  RunOptions options = options_to_probe(arguments.out, arguments.sets);
  if (!arguments.only.empty()) options.table().set("probes.run", arguments.only, "--only");
  return options;
}

Json json_of(const ProbeStep& step) {
  return {
      {"step", step.number}, {"of", step.total}, {"probe", step.probe}, {"seconds_left", step.seconds_left}};
}

Json json_of(const ProbeOutcome& outcome) {
  return {{"probe", outcome.probe},
          {"file", outcome.path},
          {"status", to_string(outcome.status)},
          {"message", outcome.message}};
}

/// What is wrong is said to whoever started this, while it is there.
int measure_for(Partner& partner, const std::function<Json()>& work) {
  try {
    partner.say(work().dump(-1, ' ', false, Json::error_handler_t::replace));
    return 0;
  } catch (const Error& error) {
    try {
      partner.say(Json{{"error", error.what()}}.dump(-1, ' ', false, Json::error_handler_t::replace));
    } catch (const Error&) {  // nobody listens: the first one counts
    }
    throw;
  }
}

/// What measures, once its options are read.
using Work = std::function<Json(OutsideProblem& problem, Partner& partner)>;

Work probes_of(const MeasureArguments& arguments, const RunOptions& options) {
  const OutsideRequest request{arguments.out, options.probes.run, options.probe_options, arguments.seed};
  return [request](OutsideProblem& problem, Partner& partner) {
    Json results = Json::array();
    for (const ProbeOutcome& outcome :
         probe_outside(problem, request, [&](const ProbeStep& step) { partner.say(json_of(step).dump()); }))
      results.push_back(json_of(outcome));
    return results;
  };
}

Work landscape_of(const OutsideLandscapeRequest& request) {
  return [request](OutsideProblem& problem, Partner& partner) {
    const auto report = [&](int64_t done, int64_t points) {
      partner.say(Json{{"step", done + 1}, {"of", points}, {"point_of", request.kind}}.dump());
    };
    Json results = Json::array();
    results.push_back(Json{{"file", landscape_outside(problem, request, report)}});
    return results;
  };
}

/// Reads the options of what is asked for.
std::pair<RuntimeOptions, Work> work_of(const MeasureArguments& arguments) {
  if (arguments.landscape.empty()) {
    const RunOptions options = options_of(arguments);
    return {options.runtime, probes_of(arguments, options)};
  }
  OutsideLandscapeRequest request{arguments.out, arguments.landscape, OptionSets(landscape_kinds()),
                                  arguments.seed};
  RuntimeOptions runtime;
  OptionTable table;
  request.kinds.bind_only(table, request.kind);
  table.group("runtime", [&](OptionTable& t) { bind_options(t, runtime); });
  for (const std::string& set : arguments.sets) table.set_from_text(set, "--set");
  return {runtime, landscape_of(request)};
}

int run_measure(const MeasureArguments& arguments) {
  const auto [runtime, work] = work_of(arguments);
  apply_runtime(runtime);
  const auto partner = std::make_shared<Partner>(arguments.words, arguments.memory, arguments.silence);
  ::close(arguments.memory);
  return measure_for(*partner, [&, &work = work] {
    OutsideProblem problem(partner);
    return Json{{"done", work(problem, *partner)}};
  });
}

}  // namespace

void add_measure(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<MeasureArguments>();
  CLI::App* command = app.add_subcommand(
      "measure",
      "Measure a problem that another process answers; basin.measure() of the Python package starts this");
  command->add_option("--words", arguments->words, "descriptor of a socket, docs/operator-protocol.md")
      ->required();
  command->add_option("--memory", arguments->memory, "descriptor of the shared memory")->required();
  command->add_option("--out", arguments->out, "folder of the results")->required();
  add_list_option(*command, "--only", arguments->only, "names of probes; default: all",
                  [] { return values_of("probes.run"); });
  take_one_of(*command->add_option("--landscape", arguments->landscape,
                                   "kind of landscape around the weights, instead of probes"),
              "kind of landscape", names_of(landscape_kinds()));
  command->get_option("--landscape")->excludes(command->get_option("--only"));
  take_above_zero(
      *command->add_option("--silence", arguments->silence,
                           "seconds without a sign of life after which the other process counts as hung"));
  command->add_option("--seed", arguments->seed, "of what probes draw, and directions of landscapes");
  add_set_option(*command, arguments->sets);
  command->callback([arguments, &action] { action = [arguments] { return run_measure(*arguments); }; });
}

}  // namespace basin
