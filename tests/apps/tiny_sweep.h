// defines: TinySweep, a folder with a study of runs of a second and sweeps of it; Worker, its processes seen from outside.
#pragma once

#include <string>
#include <vector>

#include "tests/apps/tiny_study.h"

namespace basin::testing {

/// The grid of most tests: two optimisers, two seeds.
inline const std::string kTwoByTwo = "[sweep]\noptimizer = ['sgd', 'lamb']\nseed = [1, 2]\n";

/// An mlp on 200 synthetic images with two probes; `sweep` are the tables [sweep] and [[sweep.*]], `top` comes before all
/// else. Sweeps go into FOLDER/out or another folder, with two workers unless `more` says otherwise.
class TinySweep {
 public:
  explicit TinySweep(const std::string& sweep, const std::string& top = "");
  std::vector<std::string> arguments(const std::vector<std::string>& more = {},
                                     const std::string& out = "out") const;
  BinaryResult run(const std::vector<std::string>& more = {}, const std::string& out = "out") const;
  std::string path(const std::string& name) const { return folder_ / name; }
  /// Folders of its runs, in order.
  std::vector<std::string> runs(const std::string& under = "out/runs") const;
  std::vector<std::string> statuses() const;

 private:
  TemporaryFolder folder_;
};

/// A process that is at work on a run.
struct Worker {
  int pid = 0;
  std::string folder;
  bool training = false;  // updates are being made
  bool probing = false;   // training is final, and the probes have begun and not ended
};

/// Whether a trained run's probes have begun: from the first step that `basin status` could show to the note that all are done. The
/// lock is taken before that, and the checkpoint read in between.
bool is_within_probes(const std::string& run_folder);

/// The workers of all sweeps under `out`.
std::vector<Worker> live_workers(const std::string& out);

}  // namespace basin::testing
