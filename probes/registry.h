// defines: the table of probes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/registry.h"
#include "probes/probe.h"

namespace basin {

struct ProbeEntry {
  std::string name;
  std::string help;
  int64_t version;  // raised when the same settings would give other numbers: files of an older one are
                    // measured again
  std::unique_ptr<AnyOptions> (*make_options)();
  std::unique_ptr<Probe> (*make)(const AnyOptions& options);
};

/// All probes. A new one is one file and one line here.
const std::vector<ProbeEntry>& probe_registry();

}  // namespace basin
