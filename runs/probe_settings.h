// defines: chosen_settings() and what follows from them: fingerprint, file name, whether a number must be
// measured again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint.h"
#include "io/probe_file.h"
#include "study/run_options.h"

namespace basin {

using ProbeAttributes = std::vector<std::pair<std::string, OptionValue>>;

/// What a study or a command line chooses for one probe: examples, type and the probe's own options.
ProbeAttributes chosen_settings(const std::string& probe, int64_t examples, const std::string& dtype,
                                const OptionSets& probe_options);

/// First 8 hex digits of SHA-256 over chosen settings.
std::string settings_fingerprint(const ProbeAttributes& chosen);

/// RUN/probes/<label>.<probe>.h5 for the study's own settings (`studys`, their fingerprint), else
/// RUN/probes/<label>.<probe>.<fingerprint>.h5. A run without a study keeps the first settings measured under
/// the short name.
std::string probe_path(const std::string& run_folder, const std::string& label, const std::string& probe,
                       const std::string& fingerprint, const std::optional<std::string>& studys);

/// Whether the file has the short name.
bool is_studys_own(const std::string& path, const ProbeRecord& record);

/// SHA-256 over names, types, shapes and bytes of parameters and running statistics.
std::string content_hash(const Checkpoint& checkpoint);

/// Whether the record is this run's and holds every one of the settings with the same value; false for a
/// failed probe.
bool same_settings(const ProbeRecord& record, const std::string& run_id, const ProbeAttributes& settings);

}  // namespace basin
