// defines: Arrivals, whose gradient arrives next; StaleStep.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "core/parameter.h"

namespace basin {

/// A gradient on its way to the server, or there.
struct StaleStep {
  int64_t worker = 0;   // from 0
  int64_t clock = 0;    // steps that its worker had done when it began
  int64_t version = 0;  // updates in the weights it is of
  int64_t batch = 0;    // number of its batch, from 0, in the order in which steps begin
  double ends = 0;      // when it arrives, in time_units()
};

/// The order in which workers' gradients arrive, and what each is of. Versions of the weights are counted in updates.
class Arrivals {
 public:
  virtual ~Arrivals() = default;

  /// The step that arrives next.
  virtual const StaleStep& next() const = 0;
  /// It has arrived and is update `version` of the weights.
  virtual void advance(int64_t version) = 0;
  /// How many steps the worker of next() has done more than the slowest, once its gradient has arrived.
  virtual int64_t lead() const = 0;

  /// The versions so far that steps to come are of, and how many are of one.
  virtual std::set<int64_t> versions() const = 0;
  virtual int64_t steps_from(int64_t version) const = 0;

  virtual std::string time_units() const = 0;
  /// Time of the last arrival, in mean durations of a step; NaN where they aren't known.
  virtual double time() const = 0;
  /// Worker time spent waiting for the bound, of all until the last arrival; NaN where it isn't known.
  virtual double waited_share() const = 0;

  virtual NamedTensors state() const = 0;
  /// IoError where it is of other workers.
  virtual void load_state(const NamedTensors& state) = 0;
};

}  // namespace basin
