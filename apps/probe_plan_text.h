// defines: probe_plan_text(), all that decides what a study's probes measure.
#pragma once

#include <string>

#include "apps/run_options.h"

namespace basin {

/// [probes] and the tables of the probes that run, as canonical TOML, without the keys that concern memory
/// and speed alone (probes.micro_batch, probes.graph_memory): with equal settings nothing is measured again.
std::string probe_plan_text(const RunOptions& options);

}  // namespace basin
