// defines: record_of(), what a probe found as it stands in its file.
#pragma once

#include "io/probe_file.h"
#include "probes/probe.h"
#include "runs/probe_settings.h"

namespace basin {

/// With `settings` and the probe's own attributes, where it says more precisely what a setting says in its place; run,
/// setting and checkpoint are left to the caller.
ProbeRecord record_of(const ProbeResult& result, ProbeAttributes settings);

}  // namespace basin
