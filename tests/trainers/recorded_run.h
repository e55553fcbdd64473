// defines: RecordedRun, a TestRun whose record is in a folder; Crash; expect_same_tables().
#pragma once

#include <string>

#include "io/record.h"
#include "tests/trainers/test_run.h"
#include "trainers/recorder.h"

namespace basin::testing {

struct RecordedRun : TestRun {
  RecordedRun(const RunSettings& s, const std::string& folder);
  RunHeader header() const;
  TrainResult finish() {
    const TrainResult result = run();
    recorder.conclude(result);
    return result;
  }

  Recorder recorder;
  bool resumed = false;
};

/// As a crash leaves the files: the journal is ahead of the newest checkpoint and nobody says goodbye.
struct Crash : TrainObserver {
  explicit Crash(int64_t after) : after_(after) {}
  void on_update(const UpdateRecord& record) override;
  int64_t after_;
};

/// To the bit, NaN equal to NaN; all but times.
void expect_same_tables(const RunRecord& a, const RunRecord& b);

}  // namespace basin::testing
