#include "trainers/workers/stale_record.h"

#include "trainers/tables.h"

namespace basin {

void StaleRecord::note(const Arrival& arrival) {
  last_ = arrival;
  ++updates_;
  sum_stale_ += static_cast<double>(arrival.staleness);
  most_stale_ = std::max(most_stale_, arrival.staleness);
  most_lead_ = std::max(most_lead_, arrival.lead);
}

std::vector<Column> StaleRecord::columns() const {
  return {column("worker", "1", "worker whose gradient this update is", "from 0"),
          column("staleness", "updates", "staleness of the gradient",
                 "updates between the weights that the gradient is of and those that it changes"),
          column("worker_lead", "steps", "lead of the worker when its gradient arrives",
                 "its steps done, this one included, less the slowest worker's"),
          column("worker_batch", "1", "number of the gradient's batch",
                 "from 0, in the order in which steps begin"),
          column("arrival_time", time_units_, "time of arrival", "since the first step began")};
}

void StaleRecord::append(std::vector<double>& row) const {
  row.insert(row.end(), {static_cast<double>(last_.worker), static_cast<double>(last_.staleness),
                         static_cast<double>(last_.lead), static_cast<double>(last_.batch), last_.time});
}

void StaleRecord::summarise(Summary& summary, double waited, double time) const {
  const auto updates = static_cast<double>(updates_);
  summary.emplace_back("staleness_mean", updates_ > 0 ? sum_stale_ / updates : NAN);
  summary.emplace_back("staleness_max", most_stale_);
  summary.emplace_back("worker_lead_max", most_lead_);
  summary.emplace_back("worker_wait_share", waited);
  summary.emplace_back("worker_updates_per_step", time > 0 ? updates / time : NAN);
}

std::vector<Column> StaleRecord::summary_columns() {
  return {
      column("staleness_mean", "updates", "mean staleness of the gradients", "staleness"),
      column("staleness_max", "updates", "largest staleness of a gradient", "staleness"),
      column("worker_lead_max", "steps", "largest lead of a worker over the slowest", "staleness"),
      column("worker_wait_share", "1",
             "share of the workers' time spent waiting: for the bound, and for a real server", "staleness"),
      column("worker_updates_per_step", "1", "updates in the mean time of a worker's step", "staleness")};
}

std::vector<double> StaleRecord::state() const {
  return {static_cast<double>(updates_), static_cast<double>(most_stale_), static_cast<double>(most_lead_),
          sum_stale_};
}

const double* StaleRecord::load_state(const double* numbers) {
  updates_ = static_cast<int64_t>(numbers[0]);
  most_stale_ = static_cast<int64_t>(numbers[1]);
  most_lead_ = static_cast<int64_t>(numbers[2]);
  sum_stale_ = numbers[3];
  return numbers + kNumbers;
}

}  // namespace basin
