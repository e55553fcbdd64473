// defines: status.json, one small file per run that reports its progress.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "io/run_state.h"

namespace basin {

/// {"run_id":..., "status":..., "message":..., "update":..., "done":..., "images_per_second":..., "loss":...,
///  "pid":..., "host":..., "updated_utc":...}; written atomically.
struct RunStatus {
  std::string run_id, message;
  RunState status = RunState::queued;
  int64_t update = 0;
  double done = 0;                             // share of the planned work, 0..1
  double images_per_second = NAN, loss = NAN;  // NaN: not measured (yet)
  int64_t pid = 0;
  std::string host, updated_utc;
};
void write_status(const std::string& path, const RunStatus& status);
/// IoError where missing or malformed.
RunStatus read_status(const std::string& path);
/// status.json of a run folder; status "queued" where there is none or it can't be read.
RunStatus status_of(const std::string& run_folder, const std::string& run_id);

}  // namespace basin
