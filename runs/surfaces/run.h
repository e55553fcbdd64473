// defines: run_landscape(), a kind's grid computed, resumed and written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/process_pool.h"
#include "runs/surfaces/registry.h"

namespace basin {

struct LandscapeRequest {
  std::string kind;
  std::vector<std::string> files;  // checkpoints
  std::string out;                 // empty: default_landscape_path()
  LandscapeOptions landscape;
  OptionSets kinds;  // options of every kind, under its name
  RuntimeOptions runtime;
  bool force = false, retry_failed = false;
  /// Several processes: how many, of which program, and what each is called with.
  int64_t jobs = 1;
  WorkerProgram worker_program;
  std::vector<std::string> worker_arguments;
  /// A process of a pool: computes what tiles it can claim and leaves the rest to others.
  bool worker = false;
};

/// OUT/landscape/<kind>.<run_id>.<label>[.<run_id>.<label> ...].h5 where the first file is
/// OUT/runs/<run_id>/ckpt/<label>.h5, else landscape/ next to the file.
std::string default_landscape_path(const std::string& kind, const LandscapeSubject& subject);

/// Computes the tiles that are missing in OUT.tiles/ and writes OUT when all are there; then OUT.tiles/ goes.
/// Killed at any moment and called again it ends with the same numbers, bit for bit. A file of another recipe
/// is refused with the first difference. Interrupted: what is there is in OUT, the other cells `todo`.
/// Returns the exit code: 1 where cells failed.
int run_landscape(const LandscapeRequest& request);

}  // namespace basin
