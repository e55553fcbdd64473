#include "trainers/recorder.h"

#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "core/messages.h"
#include "core/provenance.h"
#include "io/damaged.h"
#include "io/run_file.h"
#include "trainers/data_identity.h"
#include "trainers/tables.h"

namespace basin {
namespace {

namespace fs = std::filesystem;
constexpr double kStatusSeconds = 1.0;
constexpr const char* kWaitingRow = "layers_row";  // in a checkpoint's progress
constexpr double kRunFileSeconds = 30.0;  // replaying the journal costs time in proportion to its length

/// 0 where the journal is missing or damaged.
int64_t updates_recorded(const std::string& journal) {
  if (!fs::exists(journal)) return 0;
  try {
    return updates_in(replay_journal(journal));
  } catch (const IoError&) {
    return 0;
  }
}

}  // namespace

Recorder::Recorder(std::string folder, RunHeader header, Trainer& trainer, bool progress)
    : folder_(std::move(folder)),
      header_(std::move(header)),
      trainer_(trainer),
      layers_every_(layers_every(trainer.setup().train, trainer.total_updates())),
      progress_("train " + header_.run_id, static_cast<double>(trainer.total_updates()), "updates",
                progress) {}

bool Recorder::resume_or_start() {
  make_folders(folder_ + "/ckpt");
  last_status_ = last_run_file_ = Clock::now();
  const std::optional<Checkpoint> checkpoint = newest_checkpoint();
  if (checkpoint) {
    resume(*checkpoint);
  } else {
    start();
  }
  write_status(RunState::running, "");
  return checkpoint.has_value();
}

JournalWriter& Recorder::journal() {
  TORCH_CHECK(journal_, "resume_or_start() begins the journal");
  return *journal_;
}

std::optional<Checkpoint> Recorder::newest_checkpoint() {
  std::string damage;
  for (const char* label : {"latest", "previous"}) {
    const std::string path = checkpoint_path(label);
    if (!fs::exists(path)) continue;
    try {
      Checkpoint checkpoint = read_checkpoint(path);
      if (std::string(label) == "previous")
        warn(fmt::format("{}; resuming from {} at update {}",
                         damage.empty() ? checkpoint_path("latest") + ": missing" : damage, path,
                         checkpoint.update));
      resumed_from_ = path;
      return checkpoint;
    } catch (const DamagedError& error) {
      if (damage.empty()) damage = error.what();
      log("warning", std::string(error.what()) + "; trying an older checkpoint");
      // Renamed out of the way, so that it doesn't replace a good one at the next checkpoint.
      if (fs::exists(checkpoint_path("previous")) && std::string(label) == "latest")
        fs::rename(path, path + ".damaged");
    }
  }
  if (!damage.empty())
    throw IoError(damage + "; no older checkpoint to resume from: remove " + folder_ + " to start afresh");
  return std::nullopt;
}

void Recorder::resume(const Checkpoint& checkpoint) {
  if (checkpoint.run_id != header_.run_id) {
    throw IoError(folder_ + ": its checkpoint belongs to run " + checkpoint.run_id + ", not " +
                  header_.run_id);
  }
  check_same_data(checkpoint_path(checkpoint.label), checkpoint.data, header_.data);
  std::error_code missing;
  const uint64_t size = fs::file_size(journal_path(), missing);
  if (missing || size < checkpoint.journal_offset) {
    throw IoError(fmt::format("{}: truncated: {} bytes, the checkpoint at update {} needs {}", journal_path(),
                              missing ? 0 : size, checkpoint.update, checkpoint.journal_offset));
  }
  trainer_.restore(checkpoint);
  progress_.resume_at(static_cast<double>(checkpoint.update));
  journal_ = JournalWriter::resume(journal_path(), checkpoint.journal_offset);
  const RunRecord record = replay_journal(journal_path());  // a damaged frame fails now, not after hours
  const auto train = record.tables.find("train");
  if (train != record.tables.end() && train->second.row_count() > 0)
    last_loss_ = train->second.column("loss").back();
  const auto waiting = checkpoint.progress.find(kWaitingRow);
  layers_row_waits_ = waiting != checkpoint.progress.end();
  if (layers_row_waits_) layers_row_ = std::get<std::vector<double>>(waiting->second);
  log("info", fmt::format("resumed from update {}", checkpoint.update));
}

void Recorder::say_what_is_lost() {
  const int64_t updates = updates_recorded(journal_path());
  if (updates > 0)
    warn(fmt::format(
        "{}: no checkpoint to resume from; starting again at update {}, {} recorded updates are lost",
        folder_, trainer_.first_update(), updates));
}

void Recorder::start() {
  say_what_is_lost();
  for (const char* leftover : {"journal", "run.h5", "ckpt", "probes"})
    fs::remove_all(folder_ + "/" + leftover);
  make_folders(folder_ + "/ckpt");
  journal_ = JournalWriter::create(journal_path(), header_);
  const TrainSetup& setup = trainer_.setup();
  journal().define_table(train_table(setup.train, trainer_.hook_columns()));
  journal().define_table(
      layers_table(setup.model->parameter_table(), layers_every_, setup.optimizer.trust_ratio_definition()));
  journal().define_table(eval_table(loss_kind(setup.train.loss)));
  for (const Table& table : trainer_.hook_tables()) journal().define_table(table);
  journal().set_status(RunState::running, "");
  log("info", "started");
}

void Recorder::on_update(const UpdateRecord& record) {
  fill_train_row(record, trainer_.setup().train, row_);
  journal().append_row("train", row_);
  record_layers(record);
  for (const HookRow& hook : record.hook_rows) journal().append_row(hook.table, hook.row);
  last_loss_ = record.loss;
  const double elapsed = seconds_since(last_status_);
  if (elapsed < kStatusSeconds && gradients_then_) return;
  if (gradients_then_)
    images_per_second_ = static_cast<double>(record.gradients - *gradients_then_) / elapsed;
  gradients_then_ = record.gradients;
  last_status_ = Clock::now();
  progress_.update(
      static_cast<double>(record.update),
      fmt::format("loss {:.4g}", record.loss) +
          (std::isfinite(images_per_second_) ? fmt::format("  {:.0f} img/s", images_per_second_) : ""));
  write_status(RunState::running, "");
  journal().sync_if_due();
}

void Recorder::record_layers(const UpdateRecord& record) {
  layers_row_waits_ = false;
  if (!record.parameters) return;
  fill_layers_row(record, layers_row_);
  layers_row_waits_ = !has_layers_row(record.update, layers_every_);
  if (!layers_row_waits_) journal().append_row("layers", layers_row_);
}

void Recorder::on_evaluation(const EvaluationRecord& record) {
  fill_eval_row(record, row_);
  journal().append_row("eval", row_);
  if (seconds_since(last_run_file_) < kRunFileSeconds) return;
  write_run_record();
}

void Recorder::on_checkpoint(const std::string& label) {
  Checkpoint checkpoint;
  trainer_.save(checkpoint);
  checkpoint.run_id = header_.run_id;
  checkpoint.config_id = header_.config_id;
  checkpoint.config = header_.config;
  checkpoint.data = header_.data;
  if (label == "latest" && layers_row_waits_) checkpoint.progress[kWaitingRow] = layers_row_;
  checkpoint.label = label;
  checkpoint.journal_offset =
      journal().offset();  // synced: what the checkpoint counts on survives a crash of the machine
  const std::string path = checkpoint_path(label);
  if (label == "latest" && fs::exists(path)) fs::rename(path, checkpoint_path("previous"));
  write_checkpoint(path, checkpoint);
}

void Recorder::on_outcomes(const std::string& split, const ExampleOutcomes& outcomes) {
  journal().append_outcomes(split, outcomes);
}

void Recorder::on_event(const std::string& level, const std::string& text) {
  journal().append_event(level, text);
  log(level, text);
}

void Recorder::append_waiting_row() {
  if (layers_row_waits_) journal().append_row("layers", layers_row_);
  layers_row_waits_ = false;  // fail() may come after conclude()
}

void remove_states(const std::string& run_folder) {
  std::error_code ignored;  // the run is what it is without that space
  for (const char* label : {"latest", "previous"})
    fs::remove(fmt::format("{}/ckpt/{}.h5", run_folder, label), ignored);
}

void Recorder::conclude(const TrainResult& result) {
  append_waiting_row();
  if (!result.validation.loss.empty()) journal().append_outcomes("validation", result.validation);
  if (!result.test.loss.empty()) journal().append_outcomes("test", result.test);
  if (!result.summary.empty()) journal().set_summary(result.summary);
  journal().set_status(result.status, result.message);
  write_run_record();
  log("info", std::string(to_string(result.status)) + (result.message.empty() ? "" : ": " + result.message));
  for (const auto& [key, value] : result.summary) {
    if (key == "images_per_second") images_per_second_ = std::get<double>(value);  // of the whole run
  }
  progress_.finish(static_cast<double>(trainer_.updates_done()), in_colour(result.status));
  write_status(result.status, result.message);
  if (is_final(result.status)) remove_states(folder_);
}

void Recorder::fail(const std::string& message, RunState state) noexcept {
  const auto attempt = [](const std::function<void()>& step) {
    try {
      step();
    } catch (const std::exception&) {
      return;  // the first fault is the one to tell
    }
  };
  attempt([&] { log("error", message); });
  attempt([&] { write_status(state, message); });
  if (!journal_) return;
  attempt([&] { append_waiting_row(); });
  attempt([&] { journal().set_status(state, message); });
  attempt([&] { write_run_record(); });
}

void Recorder::write_run_record() {
  journal().sync();
  write_run_file(folder_ + "/run.h5", replay_journal(journal_path()));
  last_run_file_ = Clock::now();
}

void Recorder::write_status(RunState status, const std::string& message) {
  const int64_t first = trainer_.first_update();
  const double own = static_cast<double>(std::max<int64_t>(1, trainer_.total_updates() - first));
  RunStatus s;
  s.run_id = header_.run_id;
  s.status = status;
  s.message = message;
  s.update = trainer_.updates_done();
  s.done = is_final(status) ? 1.0 : static_cast<double>(s.update - first) / own;
  s.images_per_second = images_per_second_;
  s.loss = last_loss_;
  s.pid = getpid();
  s.host = host_name();
  s.updated_utc = utc_now();
  basin::write_status(folder_ + "/status.json", s);
}

void Recorder::warn(const std::string& text) {
  log("warning", text);
  basin::warn(text);
}

void Recorder::log(const std::string& level, const std::string& text) {
  std::ofstream(folder_ + "/run.log", std::ios::app) << utc_now() << ' ' << level << ' ' << text << '\n';
}

}  // namespace basin
