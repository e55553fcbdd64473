#include "study/probe_plan_text.h"

namespace basin {
namespace {

void bind_plan(OptionTable& table, ProbePlan& plan, OptionSets& probe_options) {
  table.group("probes", [&](OptionTable& t) { bind_options(t, plan); });
  for (const std::string& probe : plan.run) probe_options.bind_only(table, probe);
  for (const std::string& probe : plan.twin)
    if (std::find(plan.run.begin(), plan.run.end(), probe) == plan.run.end())
      probe_options.bind_only(table, probe);
}

}  // namespace

OptionView probe_plan(const RunOptions& options) {
  return view_of(options,
                 [](OptionTable& table, RunOptions& o) { bind_plan(table, o.probes, o.probe_options); });
}

std::string probe_plan_text(const RunOptions& options) {
  ProbePlan plan = with_defaults(options.probes, OptionRole::execution);
  return view_of(options.probe_options,
                 [&](OptionTable& table, OptionSets& sets) { bind_plan(table, plan, sets); })
      .to_toml();
}

}  // namespace basin
