// defines: SbatchOptions, what --slurm adds to a batch script.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace basin {

/// sbatch's own long options, in the order given: {"partition", "gpu"}, {"exclusive", ""}.
using SbatchOptions = std::vector<std::pair<std::string, std::string>>;

/// "KEY=VALUE" or "KEY" each. ConfigError for what is no such option's name or value, and for options that Basin sets itself
/// (--array, --dependency, ...). sbatch judges the others.
SbatchOptions parse_sbatch_options(const std::vector<std::string>& texts);

/// A time limit as Slurm writes it, in whole minutes; nothing for what is none ("UNLIMITED").
std::optional<int64_t> minutes_of(const std::string& limit);

/// The value of `key`, or an empty text.
std::string value_of(const SbatchOptions& options, const std::string& key);

}  // namespace basin
