// defines: ArrivalList, read_arrivals() and RecordedOrder, the arrivals of a run that was, once more.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "trainers/workers/arrivals.h"
#include "trainers/workers/stale_record.h"

namespace basin {

/// The order of arrivals that a run recorded.
struct ArrivalList {
  std::string path, run_id, config_id;  // of the run
  std::string time_units;
  std::vector<Arrival> arrivals;  // by update
  std::string sha256;             // of all numbers in it, wherever they lie
};
/// `path`: a run.h5, or the folder of one. ConfigError where it has no order of arrivals, one that can't be, or a
/// branch's.
ArrivalList read_arrivals(const std::string& path);

/// The order of arrivals that a run recorded: update t of its table "train" has the worker, the batch and the staleness tau_t, so that it
/// is of the weights after update t - 1 - tau_t. Whatever made the order, processes or simulated clocks, and whoever died meanwhile, the
/// updates are made again by one process, the same to the bit each time.
///
/// With the other run's options, float64 and the same number of ranks for a batch the weights are the other run's but for the order of
/// sums. Neither the bound nor the delays of that run are needed. Memory: the order, and the versions of weights in use.
class RecordedOrder final : public Arrivals {
 public:
  /// ConfigError where there are fewer arrivals than `updates`, or more workers than `workers`.
  RecordedOrder(const ArrivalList& list, int64_t updates, int64_t workers);

  const StaleStep& next() const override { return steps_.at(static_cast<size_t>(done_)); }
  void advance(int64_t version) override;
  int64_t lead() const override { return leads_.at(static_cast<size_t>(done_)); }
  std::set<int64_t> versions() const override;
  int64_t steps_from(int64_t version) const override;
  std::string time_units() const override { return time_units_; }
  double time() const override { return NAN; }
  double waited_share() const override { return NAN; }
  NamedTensors state() const override;
  /// IoError where the order is another than when it was saved.
  void load_state(const NamedTensors& state) override;

 private:
  std::string path_, time_units_;
  std::vector<StaleStep> steps_;
  std::vector<int64_t> leads_;
  std::map<int64_t, int64_t> to_come_;  // steps from each version
  int64_t done_ = 0;
};

}  // namespace basin
