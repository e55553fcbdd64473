// defines: DryRun, what `basin sweep --dry-run` found out, and printing it for people and as JSON.
#pragma once

#include <cstdint>
#include <string>

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
};

void print(const DryRun& found);
void print_json(const DryRun& found);

}  // namespace basin
