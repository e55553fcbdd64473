// defines: measure_audit(), the measures of a checkpoint on networks with the same function; AuditResult.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint.h"
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
  /// Probes that failed on the network as it is, each with its message.
  std::vector<std::pair<std::string, std::string>> failures;
};

/// Every probe of the plan on the checkpoint's network, by several seeds, and on each network that audit_trials() makes of
/// it (docs/measures.md). Costs that many times what the probes cost. ConfigError where the model has no transformation that
/// leaves anything unchanged.
AuditResult measure_audit(const std::string& run_folder, const Checkpoint& checkpoint,
                          const AuditRequest& request, at::Device device);

}  // namespace basin
