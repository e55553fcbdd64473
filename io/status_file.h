// defines: status.json, one small file per run that says where it stands.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace basin {

/// {"run_id":..., "status":..., "message":..., "update":..., "done":..., "images_per_second":..., "loss":...,
///  "pid":..., "host":..., "updated_utc":...}; written atomically.
struct RunStatus {
  std::string run_id, status = "queued",
                      message;  // queued running interrupted finished target_not_reached diverged failed
  int64_t update = 0;
  double done = 0;                             // share of the planned work, 0..1
  double images_per_second = NAN, loss = NAN;  // NaN: not measured (yet)
  int64_t pid = 0;
  std::string host, updated_utc;
};
void write_status(const std::string& path, const RunStatus& status);
/// IoError where missing or malformed.
RunStatus read_status(const std::string& path);
/// finished, target_not_reached or diverged: nothing left to do for the run.
bool is_final(const std::string& status);

}  // namespace basin
