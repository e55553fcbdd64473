// defines: StaleRecord, what a run says about the staleness of its updates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainers/update_hook.h"

namespace basin {

/// One arrival: which worker's gradient, of which batch (number, from 0), how many updates later, with what lead, and when.
struct Arrival {
  int64_t worker = 0, batch = 0, staleness = 0, lead = 0;
  double time = 0;
};

/// Columns of the table "train", which together are the order of arrivals, and the summary.
class StaleRecord {
 public:
  /// `time_units`: what Arrival::time is in.
  explicit StaleRecord(std::string time_units) : time_units_(std::move(time_units)) {}
  void note(const Arrival& arrival);
  int64_t updates() const { return updates_; }

  std::vector<Column> columns() const;
  void append(std::vector<double>& row) const;
  /// `waited`: share of the workers' time; `time` of the whole run.
  void summarise(Summary& summary, double waited, double time) const;
  static std::vector<Column> summary_columns();

  std::vector<double> state() const;
  /// Takes state() from `numbers`, and returns what comes after it.
  const double* load_state(const double* numbers);
  static constexpr int64_t kNumbers = 4;  // of state()

 private:
  std::string time_units_;
  Arrival last_;
  int64_t updates_ = 0, most_stale_ = 0, most_lead_ = 0;
  double sum_stale_ = 0;
};

}  // namespace basin
