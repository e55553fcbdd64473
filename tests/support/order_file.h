// defines: write_order(), a run.h5 with an order of arrivals; kOrderByHand.
#pragma once

#include <string>
#include <vector>

#include "io/run_file.h"
#include "trainers/tables.h"
#include "trainers/workers/stale_record.h"

namespace basin::testing {

/// Two workers, of which the second is slow, and then dies; batch 3 was under way with it.
inline const std::vector<Arrival> kOrderByHand = {
    {.worker = 0, .batch = 0, .staleness = 0, .lead = 1, .time = 0.5},
    {.worker = 0, .batch = 2, .staleness = 0, .lead = 2, .time = 1.0},
    {.worker = 1, .batch = 1, .staleness = 2, .lead = -1, .time = 1.25},
    {.worker = 0, .batch = 4, .staleness = 1, .lead = 2, .time = 1.5},
    {.worker = 0, .batch = 5, .staleness = 0, .lead = 3, .time = 2.0}};

inline std::string write_order(const std::string& path, const std::vector<Arrival>& order,
                               const std::string& config_id = "cdef01234567", int64_t first_update = 1) {
  StaleRecord seen("s");
  Table train{"train", "updates", {column("update", "1", "update", "from 1")}, {}};
  for (const Column& column : seen.columns()) train.columns.push_back(column);
  for (size_t i = 0; i < order.size(); ++i) {
    seen.note(order[i]);
    train.rows.push_back(static_cast<double>(first_update) + static_cast<double>(i));
    seen.append(train.rows);
  }
  RunRecord record;
  record.header.run_id = "0123456789ab";
  record.header.config_id = config_id;
  record.tables["train"] = train;
  write_run_file(path, record);
  return path;
}

}  // namespace basin::testing
