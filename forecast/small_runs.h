// defines: SmallRun, what a forecast takes from one run at a small batch size; read_small_runs().
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace basin {

/// One run of protocol B, from its record and its study's probes `preconditioned_curvature` and `noise_scale`. With eta_t the rate of update t (after warm-up and schedule),
/// eta its peak, and lambda(t), B(t) interpolated between the probed checkpoints (log, over updates; constant before the first
/// and after the last):
///   effective    A = sum_t eta_t / eta                      updates at the full rate
///   floor        F = sum_t eta_t lambda_1(P^-1 H)(t) / c    updates that the same way takes where each is as long as the
///                                                           stability limit c allows: c = 2(1 + beta)/(1 - dampening),
///                                                           for Adam's moments 2(1 + beta1)/(1 - beta1)
///                                                           (Optimizer::frozen_stability_limit())
///   noise_scale      sum_t w_t B(t) / sum_t w_t, w_t = eta_t lambda(t): B_simple of the finite set, by its share of F
/// c for a P that moves with the gradient (LARS, LAMB) is that of P held fixed: a yardstick, not a theorem.
struct SmallRun {
  std::string run_id, optimizer;
  int64_t batch = 0, examples = 0;  // N, training examples
  int64_t seed = 0;
  double rate = NAN;       // learning_rate of the options
  double updates = NAN;    // to the target; NaN: not reached
  double effective = NAN;  // NaN with `updates`
  double floor = NAN;      // NaN without a resolved curvature, or a limit
  double noise_scale = NAN;
  double probe_cost = 0;     // image gradients; a Hessian-vector product counted as 2.5
  std::string setting, arm;  // what must be the same in the test runs (comparison.h)
};

/// A file that was read, by its path below OUT.
struct InputFile {
  std::string path, sha256;
};

struct SmallRuns {
  std::vector<SmallRun> runs;
  std::vector<InputFile> files;
};

/// Every run of OUT/runs and OUT/tuning that has ended. ConfigError for what require_small_batches() refuses, where a run isn't of
/// protocol B, where two runs differ in what setting_text() has, or where N is at most kLargestSmallBatch. IoError where there is none.
SmallRuns read_small_runs(const std::string& out);

}  // namespace basin
