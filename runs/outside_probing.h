// defines: probe_outside(), probes on a problem that another process answers; weights_hash().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hessian/outside/outside_problem.h"
#include "runs/probing.h"

namespace basin {

struct OutsideRequest {
  std::string out;  // folder of the results
  std::vector<std::string> probes;
  OptionSets probe_options;
  uint64_t seed = 1;  // of the draws, as a run's
};

/// SHA-256 of names, shapes and weights: what a problem is called by.
std::string weights_hash(const OutsideProblem& problem);

/// Measures every probe in `probes` at the problem's own weights, after check_outside(), and writes
/// OUT/probes/end.<probe>.h5 for each, as of a run's last checkpoint. The run's name is a hash of names, shapes and
/// weights. Nothing that lies there counts as measured: no hash covers the other process's code and examples.
///
/// A probe that throws has the status failed; what the partner does wrong (PartnerError) ends it all.
std::vector<ProbeOutcome> probe_outside(OutsideProblem& problem, const OutsideRequest& request,
                                        const std::function<void(const ProbeStep&)>& begins = {});

}  // namespace basin
