// defines: options_to_probe(), the options for measuring a run by hand.
#pragma once

#include <string>
#include <vector>

#include "study/run_options.h"

namespace basin {

/// The options of the run's study (RUN/cell.toml); without one, or where it names no probe, every probe's defaults, at the end. On top
/// of them `sets`, "key=value" of probes, [probes] and [runtime] alone: ConfigError for others, since a run is measured as it is.
/// Where they choose a tool's variant (an option that is a preset), the probe has that tool's values and what else they set: a study's own,
/// all of which cell.toml spells out, would leave it nothing.
RunOptions options_to_probe(const std::string& run_folder, const std::vector<std::string>& sets);

}  // namespace basin
