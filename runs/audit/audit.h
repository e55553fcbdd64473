// defines: measure_audit(), the measures of a checkpoint on networks with the same function; AuditResult, failures_of().
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint.h"
#include "probes/probe.h"
#include "runs/audit/file.h"
#include "runs/audit/plan.h"
#include "study/run_options.h"

namespace basin {

struct AuditRequest {
  ProbePlan plan;                 // run: the probes; subset, micro_batch, dtype
  std::vector<std::string> sets;  // PROBE.KEY=VALUE
  bool progress = true;
};

struct AuditResult {
  AuditFile file;
  std::vector<std::pair<std::string, std::string>> failures;  // see failures_of()
};

/// Values of one probe's settings: of the network as it is by every seed, and of each transformed one.
struct Measured {
  const AuditVariant& variant;
  std::vector<ProbeResult> originals, transformed;
};

/// Probes that failed on the network as it is, or on a transformed one alone, each with its message: their numbers are NaN.
std::vector<std::pair<std::string, std::string>> failures_of(const std::vector<Measured>& all,
                                                             const std::vector<AuditTrial>& trials);

/// Every probe of the plan on the checkpoint's network, by several seeds, and on each network that audit_trials() makes of
/// it (docs/measures.md). Costs that many times what the probes cost. ConfigError where the model has no transformation that
/// leaves anything unchanged.
AuditResult measure_audit(const std::string& run_folder, const Checkpoint& checkpoint,
                          const AuditRequest& request, at::Device device);

}  // namespace basin
