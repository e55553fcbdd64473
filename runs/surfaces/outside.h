// defines: landscape_outside(), a landscape of a problem that another process answers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "hessian/outside/outside_problem.h"
#include "study/run_options.h"

namespace basin {

struct OutsideLandscapeRequest {
  std::string out;  // folder of the result
  std::string kind;
  OptionSets kinds;   // options of every kind, under its name
  uint64_t seed = 1;  // of the directions, as landscape.seed
};

/// Computes a landscape of a kind that asks for the loss alone, around the problem's own weights, after check_outside(), and
/// writes OUT/landscape/<kind>.h5; returns that path. The weights are back when it ends, however that comes about.
///
/// One loss per point, asked for by example where that is no more work: then it has its standard error over the examples. Nothing is kept of a landscape that was interrupted: no hash covers the other process's code and examples.
///
/// `report` is called before each point of the grid with how many are done. ConfigError for a kind that needs more
/// than one point or the network itself; Unanswered where the problem answers no loss.
std::string landscape_outside(OutsideProblem& problem, const OutsideLandscapeRequest& request,
                              const std::function<void(int64_t done, int64_t points)>& report = {});

}  // namespace basin
