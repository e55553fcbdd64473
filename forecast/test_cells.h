// defines: TestCell, what a forecast is of; test_cells(), those of a study.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "study/study.h"

namespace basin {

/// One optimiser at one batch size, with every rate that will be tried. What is predicted: a seed's updates to the target at the
/// rate that is fastest over the other seeds.
struct TestCell {
  std::string optimizer, setting, arm;
  int64_t batch = 0, examples = 0;
  double target = 0;
  std::vector<double> rates;    // of the trials, in their order
  double gradients = 0;         // image gradients of one update
  std::vector<double> factors;  // the schedule's factor at each update up to the cap

  int64_t cap() const { return static_cast<int64_t>(factors.size()); }
  /// The first update by which the sum of factors is at least `effective` (SmallRun::effective); infinite beyond the cap.
  double updates_of(double effective) const;
};

/// Cells of the study that holds the test runs, seeds and rates taken together. `examples`: N of the small runs, whose data it must
/// have. ConfigError for a cell at or below kLargestSmallBatch, one that isn't of protocol B, one whose batch grows, a branch, a scaling
/// rule or an effective rate (the rates of trials have to be the rates used); for trials of one optimiser and size that differ in more
/// than rate and seed; and for two sizes of N or more, which are one experiment.
std::vector<TestCell> test_cells(const Study& study, int64_t examples, const std::string& where);

}  // namespace basin
