// defines: Recorder, which writes a run to disk: journal, run.h5, status.json, checkpoints, progress; remove_states().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/progress.h"
#include "io/journal.h"
#include "io/status_file.h"
#include "trainers/observer.h"
#include "trainers/trainer.h"

namespace basin {

/// Removes what a run would go on from. Once its status is on disk and says how it ended nothing does; a process that is killed there leaves
/// it to the next one that looks.
void remove_states(const std::string& run_folder);

/// The journal is the truth; run.h5 is replayed from it. A checkpoint remembers how long the journal was, and resuming cuts
/// the journal back to that: what a killed process wrote later is written again, bit for bit but for times.
/// Whether an update is the last is known only when the next one comes, possibly in another process: so a
/// checkpoint keeps the pending row of "layers".
/// "latest" is kept twice (latest.h5, previous.h5) until the run is final; milestones stay. What concerns only one process (that it
/// resumed, say) goes to run.log, never into the record.
class Recorder : public TrainObserver {
 public:
  Recorder(std::string folder, RunHeader header, Trainer& trainer, bool progress);

  /// Restores the trainer from the newest whole checkpoint, or clears the folder's leftovers, probes of an earlier training
  /// among them, and starts a journal. IoError where all checkpoints or the journal are damaged, and where a checkpoint is
  /// whole but not to be taken: of another run, other data or another version, or one that the system doesn't let us read.
  /// True: resumed.
  bool resume_or_start();
  /// The file of that checkpoint; empty: it started.
  const std::string& resumed_from() const { return resumed_from_; }

  void on_update(const UpdateRecord& record) override;
  void on_evaluation(const EvaluationRecord& record) override;
  void on_checkpoint(const std::string& label) override;
  void on_outcomes(const std::string& split, const ExampleOutcomes& outcomes) override;
  void on_event(const std::string& level, const std::string& text) override;

  /// Outcomes, summary, status and run.h5; status.json says so last.
  void conclude(const TrainResult& result);
  /// After an exception: as much of conclude() as the disk still takes.
  void fail(const std::string& message, RunState state = RunState::failed) noexcept;

 private:
  JournalWriter& journal();
  std::optional<Checkpoint> newest_checkpoint();
  void resume(const Checkpoint& checkpoint);
  void start();
  void say_what_is_lost();
  void record_layers(const UpdateRecord& record);
  void append_waiting_row();
  void write_run_record();
  void write_status(RunState status, const std::string& message);
  /// In the log and on stderr.
  void warn(const std::string& text);
  void log(const std::string& level, const std::string& text);
  std::string checkpoint_path(const std::string& label) const { return folder_ + "/ckpt/" + label + ".h5"; }
  std::string journal_path() const { return folder_ + "/journal"; }

  std::string folder_, resumed_from_;
  RunHeader header_;
  Trainer& trainer_;
  std::optional<JournalWriter> journal_;
  std::vector<double> row_;
  int64_t layers_every_;
  std::vector<double> layers_row_;  // of the newest update
  bool layers_row_waits_ = false;   // it is written where no update follows
  Progress progress_;
  Clock::time_point last_status_, last_run_file_;
  double last_loss_ = NAN, images_per_second_ = NAN;  // NaN: not measured yet
  std::optional<int64_t> gradients_then_;             // at the last status: for the rate
};

}  // namespace basin
