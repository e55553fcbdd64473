// defines: Prediction, what is predicted of a cell; predict_cell(), the law's updates seen through a cell's trials and cap.
#pragma once

#include <array>
#include <cmath>
#include <string>

#include "forecast/laws.h"
#include "forecast/test_cells.h"

namespace basin {

inline constexpr std::array<double, 5> kLevels = {0.05, 0.25, 0.5, 0.75, 0.95};

/// Quantiles of log(updates of the fastest trial); infinite where the target is not reached by the cap, by any of the trials.
/// `not_reached`: the probability of that. NaN, with a reason, where the law lacks a number.
struct Prediction {
  std::array<double, 5> quantiles = {NAN, NAN, NAN, NAN, NAN};
  double not_reached = NAN;
  std::string reason;
};

/// kDraws times: log S* and the errors of rate and edge are drawn (Philox: by place, the same for every law and cell, so a
/// prediction is a function of its inputs), then for each rate of the trials
///   log eta* = log eta(b) + log S(b) - log S* + kRateError z    eta S is constant on the line of S(B): McCandlish et al., eq. 2.10
///   S(eta)   = S* exp(kCurvatureInRate d^2 / 2),  d = log eta - log eta*;  no run above kEdge eta* exp(kEdgeError z')
/// the least over the trials, laid over the schedule (TestCell::updates_of). The four constants come from the trials of
/// the quick setting (forecast/calibration.h), and are the same for all laws.
Prediction predict_cell(const Law& law, const Evidence& evidence, const TestCell& cell);

/// Median of the updates, at most the cap: what the cell is expected to cost a run.
double expected_updates(const Prediction& prediction, const TestCell& cell);

}  // namespace basin
