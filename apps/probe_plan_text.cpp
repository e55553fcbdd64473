#include "apps/probe_plan_text.h"

namespace basin {

std::string probe_plan_text(const RunOptions& options) {
  RunOptions copy = options;
  const ProbePlan defaults;
  copy.probes.micro_batch = defaults.micro_batch;
  copy.probes.graph_memory = defaults.graph_memory;
  OptionTable table;
  table.group("probes", [&](OptionTable& t) { bind_options(t, copy.probes); });
  for (const std::string& probe : copy.probes.run) copy.probe_options.bind_only(table, probe);
  return table.to_toml();
}

}  // namespace basin
