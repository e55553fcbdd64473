// defines: order_link() and name_of_order(), which run's order of arrivals a run makes again.
#pragma once

#include <memory>
#include <string>

#include "study/needed_runs.h"
#include "trainers/workers/recorded_order.h"

namespace basin {

/// parallel.order where delays = "recorded": the run_id of that run. The path of a run.h5, or of a run's folder, becomes "sha256:" and
/// the SHA-256 of its arrivals, and goes to parallel.order_path; such a text stays as it is. ConfigError in one line for a run without
/// workers or with more of them; IoError where a file is missing, damaged or foreign.
std::unique_ptr<RunLink> order_link();

/// "sha256:" and the SHA-256 of the arrivals.
std::string name_of_order(const ArrivalList& list);

}  // namespace basin
