// defines: probe_plan_text() and probe_plan(), all that decides what a study's probes measure.
#pragma once

#include <string>

#include "study/run_options.h"

namespace basin {

/// [probes] and the tables of the probes that run.
OptionView probe_plan(const RunOptions& options);

/// The same as canonical TOML, with the defaults of what concerns execution alone: with equal settings nothing is
/// measured again.
std::string probe_plan_text(const RunOptions& options);

}  // namespace basin
