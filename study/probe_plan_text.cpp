#include "study/probe_plan_text.h"

namespace basin {

OptionTable probe_plan_table(RunOptions& options) {
  const ProbePlan defaults;
  options.probes.micro_batch = defaults.micro_batch;
  options.probes.graph_memory = defaults.graph_memory;
  options.probes.fold_norm = defaults.fold_norm;
  OptionTable table;
  table.group("probes", [&](OptionTable& t) { bind_options(t, options.probes); });
  for (const std::string& probe : options.probes.run) options.probe_options.bind_only(table, probe);
  return table;
}

std::string probe_plan_text(const RunOptions& options) {
  RunOptions copy = options;
  return probe_plan_table(copy).to_toml();
}

}  // namespace basin
