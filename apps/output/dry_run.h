// defines: DryRun, what `basin sweep --dry-run` found out, and printing it for people and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/output/contrast_plan.h"
#include "sweep/cost_model.h"
#include "sweep/plan.h"

namespace basin {

struct DryRun {
  const std::string &study, &out;
  const SweepPlan& plan;
  const CostModel& costs;
  int64_t jobs, threads;
  double seconds;  // expected of all that is left, by those workers
  bool retry;      // failed runs count as left
  const std::vector<PlannedContrast>& contrasts;
  std::string hypotheses_hash;  // registered_hash(); empty where the study has none
};

void print(const DryRun& found);
void print_json(const DryRun& found);

}  // namespace basin
