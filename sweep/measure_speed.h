// defines: measure_speed(), the micro-benchmark behind the cost model; CellSpeed, what it finds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "study/run_options.h"

namespace basin {

/// Seconds of one worker's steps on this machine while as many workers run as the sweep will use.
struct CellSpeed {
  std::vector<double> batch;                                       // images per update, rising
  std::vector<double> update_seconds;                              // of one update at these
  double forward = 1e-4, probe_gradient = 3e-4, probe_hvp = 9e-4;  // per image
  double start_up = 0.3;                                           // process, data, files
  double checkpoint_bytes = 1e6;
  double measured_seconds = 0;  // that the measuring itself took, start-up apart
};

/// The micro-benchmark, a second or two: real updates of the cell's model and optimiser at the given batch sizes (the
/// larger ones are left out where one update would take seconds), a forward pass, a gradient, a Hessian-vector product and
/// a whole run of one update, made in `scratch`. Where the data can't be read, synthetic images stand in.
CellSpeed measure_speed(const RunOptions& cell, const std::vector<int64_t>& batches,
                        const std::string& scratch);
std::string to_toml(const CellSpeed& speed);
CellSpeed parse_speed(const std::string& toml, const std::string& file_name);

}  // namespace basin
