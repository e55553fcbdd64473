// defines: probe_plan_text() and probe_plan_table(), all that decides what a study's probes measure.
#pragma once

#include <string>

#include "study/run_options.h"

namespace basin {

/// [probes] and the tables of the probes that run, without the keys that concern memory and speed alone
/// (probes.micro_batch, probes.graph_memory, probes.fold_norm), which are set to their defaults in `options`.
OptionTable probe_plan_table(RunOptions& options);

/// The same as canonical TOML: with equal settings nothing is measured again.
std::string probe_plan_text(const RunOptions& options);

}  // namespace basin
