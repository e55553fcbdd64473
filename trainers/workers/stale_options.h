// defines: StaleGradientOptions, [parallel]; check_workers(), needs_ranks().
#pragma once

#include <cstdint>
#include <string>

#include "core/options.h"

namespace basin {

/// [parallel]. `order` as it is written: conditions that name a run of the study, or a path; as it is resolved: the run's run_id, or
/// "sha256:" and the SHA-256 of its arrivals.
struct StaleGradientOptions {
  std::string mode = "one";         // one | ssp
  int64_t workers = 4;              // that push gradients
  int64_t bound = 0;                // s of stale-synchronous parallel; -1: none
  std::string delays = "constant";  // constant | exponential | real | recorded: how long a step takes
  double straggler = 1;             // the first worker's steps take so many times as long
  std::string order = {};           // of arrivals that is made again: see study/recorded_orders.h
  std::string order_path = {};      // run.h5 that has it, outside of the study
  std::string order_setting = {};   // that run's config_id

  bool on() const { return mode != "one"; }
  /// Workers are processes: each is a rank, and so is their server.
  bool real() const { return on() && delays == "real"; }
  bool recorded() const { return on() && delays == "recorded"; }
};
void bind_options(OptionTable& table, StaleGradientOptions& options);
/// ConfigError where there is an order, or real workers, and no mode that has workers: the plain run would be taken for theirs.
void check_workers(const StaleGradientOptions& options);
/// What to say where there are other ranks than real workers and their server.
std::string needs_ranks(const StaleGradientOptions& options, int ranks);

}  // namespace basin
