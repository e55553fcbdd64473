// defines: TinyStudy, a folder with a study file of a run that takes a second, and what tests ask of its files and processes.
#pragma once

#include <string>
#include <vector>

#include "io/record.h"
#include "tests/support/run_binary.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_files.h"

namespace basin::testing {

/// Study on the synthetic set, 200 training examples, an mlp; `lines` are top-level TOML, later ones win.
class TinyStudy {
 public:
  explicit TinyStudy(const std::vector<std::string>& lines = {}, const std::vector<std::string>& tables = {});

  /// `basin train study.toml --out FOLDER/OUT ...`.
  std::vector<std::string> train_arguments(const std::vector<std::string>& more = {},
                                           const std::string& out = "out") const;
  BinaryResult train(const std::vector<std::string>& more = {}) const {
    return run_binary(train_arguments(more));
  }
  /// The only folder under OUT/runs.
  std::string run_folder(const std::string& out = "out") const;
  std::string path(const std::string& name) const { return folder_ / name; }
  std::string study() const { return folder_ / "study.toml"; }

 private:
  TemporaryFolder folder_;
};

/// Every number that two runs of one config must have in common, as text: tables without times, outcomes, summary without
/// times, events without times.
std::string comparable(const RunRecord& record);

/// An entry of the run's provenance; "" where there is none.
std::string provenance_of(const RunRecord& record, const std::string& key);

std::vector<pid_t> children_of(pid_t parent);

/// Waits until the study's run has made some updates; a failure of the test where it ends before.
void wait_for_updates(const TinyStudy& study, RunningBinary& process, int64_t updates,
                      const std::string& out = "out");

}  // namespace basin::testing
