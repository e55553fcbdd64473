// defines: LanczosState, what a Lanczos run needs to resume with the same bits, and its file.
#pragma once

#include <ATen/core/Tensor.h>

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <string>

namespace basin {

struct LanczosState {
  at::Tensor vectors, products;  // of the basis, [m, n]
  at::Tensor remainder;
  Eigen::MatrixXd projected;  // [m, m]
  Eigen::VectorXd coupling;
  double beta = 0, asymmetry = 0;
  int64_t products_done = 0, restarts = 0, breakdowns = 0, search_until = 0;
  bool break_off = false;
  at::Tensor generator;  // its state
};

/// One HDF5 file (schema "basin/lanczos"), written whole or not at all; twice the basis in memory while
/// saving. `key` says what the run is: operator, options, seed.
void write_lanczos_state(const std::string& path, const std::string& key, const LanczosState& state);
/// Nothing where there is no file, a damaged one, or one of another key.
std::optional<LanczosState> read_lanczos_state(const std::string& path, const std::string& key);

}  // namespace basin
