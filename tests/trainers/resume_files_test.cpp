// Stop, kill and go on through the files: every table and parameter to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "data/load.h"
#include "io/journal.h"
#include "io/run_file.h"
#include "io/schema.h"
#include "io/status_file.h"
#include "optim/registry.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_files.h"
#include "tests/trainers/recorded_run.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

void expect_stops_to_change_nothing(const RunSettings& s) {
  const TemporaryFolder quiet, disturbed;
  RecordedRun undisturbed(s, quiet.path());
  const TrainResult expected = undisturbed.finish();
  ASSERT_EQ(expected.status, RunState::finished);
  {
    RecordedRun first(s, disturbed.path());
    const TrainResult stopped = first.run_until(3);
    ASSERT_EQ(stopped.status, RunState::interrupted);
    first.recorder.conclude(stopped);
  }
  {
    RecordedRun second(s, disturbed.path());
    EXPECT_TRUE(second.resumed);
    Crash crash(6);
    second.trainer->observe(crash);
    EXPECT_THROW(second.run(), std::runtime_error);
    EXPECT_EQ(replay_journal(disturbed / "journal").tables.at("train").row_count(), 6);
  }
  RecordedRun third(s, disturbed.path());
  EXPECT_TRUE(third.resumed);
  EXPECT_EQ(third.trainer->updates_done(), 3);
  const TrainResult result = third.finish();
  EXPECT_EQ(result.status, RunState::finished);
  EXPECT_EQ(result.test.loss, expected.test.loss);
  expect_same_tables(read_run_file(disturbed / "run.h5"), read_run_file(quiet / "run.h5"));
  const Checkpoint a = read_checkpoint(disturbed / "ckpt/end.h5"), b = read_checkpoint(quiet / "ckpt/end.h5");
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    EXPECT_TRUE(a.parameters[i].tensor.equal(b.parameters[i].tensor)) << a.parameters[i].name;
  }
  for (const auto& [mine, theirs] : {std::pair{&a.buffers, &b.buffers},
                                     {&a.optimizer, &b.optimizer},
                                     {&a.state("average"), &b.state("average")},
                                     {&a.state("slow_weights"), &b.state("slow_weights")}}) {
    ASSERT_EQ(mine->size(), theirs->size());
    for (size_t i = 0; i < mine->size(); ++i)
      EXPECT_TRUE((*mine)[i].second.equal((*theirs)[i].second)) << (*mine)[i].first;
  }
}

class ThroughTheFiles : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Optimizers, ThroughTheFiles, ::testing::ValuesIn(names_of(optimizer_registry())),
                         [](const auto& info) { return info.param; });

TEST_P(ThroughTheFiles, ARunStoppedOnceAndKilledOnceEqualsAnUndisturbedOne) {
  expect_stops_to_change_nothing(noisy_settings(GetParam()));
}

TEST_P(ThroughTheFiles, SoDoesOneWithHooks) {
  expect_stops_to_change_nothing(with_hooks(noisy_settings(GetParam())));
}

/// A run stopped after two updates, with latest.h5 and previous.h5.
struct StoppedRun {
  StoppedRun() {
    settings = small_settings();
    settings.train.checkpoint_seconds = 0;
    RecordedRun run(settings, folder.path());
    run.recorder.conclude(run.run_until(2));
  }
  std::string error() {
    try {
      RecordedRun again(settings, folder.path());
    } catch (const IoError& error) {
      return error.what();
    }
    return "no error";
  }
  TemporaryFolder folder;
  RunSettings settings;
};

TEST(RecorderTest, LetsANewerSchemaStandInsteadOfGoingBack) {
  StoppedRun run;
  const std::string path = run.folder / "ckpt/latest.h5";
  std::string bytes = without_seal(read_file(path));
  const size_t version = bytes.find(kSchemaVersion);
  ASSERT_NE(version, std::string::npos);
  bytes[version] = '9';
  write_file_atomically(path, bytes);
  EXPECT_THAT(run.error(), HasSubstr("schema version 9."));
  EXPECT_EQ(read_file(path), bytes) << "renamed or written over";
}

TEST(RecorderTest, LetsAForeignFileAndASystemErrorThrough) {
  StoppedRun run;
  const std::string path = run.folder / "ckpt/latest.h5";
  fs::remove(path);
  fs::create_directory(path);  // as a file that the system won't give us
  EXPECT_THAT(run.error(), HasSubstr("latest.h5"));
  EXPECT_TRUE(fs::is_directory(path));
  fs::remove(path);
  fs::copy_file(run.folder / "run.h5", path);
  EXPECT_THAT(run.error(), HasSubstr("a basin/run file, not a basin/checkpoint file"));
  EXPECT_TRUE(fs::exists(path));
}

TEST(RecorderTest, GoesBackWhereACheckpointIsDamaged) {
  StoppedRun run;
  const std::string path = run.folder / "ckpt/latest.h5";
  fs::resize_file(path, fs::file_size(path) / 2);
  RecordedRun again(run.settings, run.folder.path());
  EXPECT_TRUE(again.resumed);
  EXPECT_TRUE(fs::exists(path + ".damaged"));
}

TEST(RecorderTest, GoesBackToThePreviousCheckpointWithAWordWhereTheLatestIsGone) {
  StoppedRun run;
  fs::remove(run.folder / "ckpt/latest.h5");
  ::testing::internal::CaptureStderr();
  RecordedRun again(run.settings, run.folder.path());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("latest.h5: missing"), HasSubstr("previous.h5 at update 2")));
  EXPECT_TRUE(again.resumed);
}

TEST(RecorderTest, SaysHowMuchIsLostWhereThereIsNoCheckpoint) {
  StoppedRun run;
  for (const char* name : {"latest", "previous"}) fs::remove(run.folder / fmt::format("ckpt/{}.h5", name));
  ::testing::internal::CaptureStderr();
  RecordedRun again(run.settings, run.folder.path());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr(run.folder.path()), HasSubstr("2 recorded updates are lost")));
  EXPECT_FALSE(again.resumed);
}

TEST(RecorderTest, RefusesToGoOnWithOtherData) {
  StoppedRun run;
  run.settings.data.train_examples = 199;
  const std::string error = run.error();
  EXPECT_THAT(error, HasSubstr("other data"));
  EXPECT_THAT(error, HasSubstr(load_dataset(run.settings.data).sha256));
  run.settings.data.train_examples = 200;
  EXPECT_THAT(error, HasSubstr(load_dataset(run.settings.data).sha256));
}

TEST(RecorderTest, StartingAfreshTakesProbesOfAnEarlierTrainingAway) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "probes");
  write_file_atomically(folder / "probes/end.noise_scale.h5", "stale");
  RecordedRun run(small_settings(), folder.path());
  EXPECT_FALSE(run.resumed);
  EXPECT_FALSE(fs::exists(folder / "probes"));
}

TEST(RecorderTest, SaysWhereAFailedRunStood) {
  const TemporaryFolder folder;
  RunSettings s = small_settings();
  s.train.layers_every = 1000;
  RecordedRun run(s, folder.path());
  Crash crash(3);
  run.trainer->observe(crash);
  EXPECT_THROW(run.run(), std::runtime_error);
  run.recorder.fail("crash");
  const RunStatus status = read_status(folder / "status.json");
  EXPECT_EQ(status.status, RunState::failed);
  EXPECT_EQ(status.update, 3);
  EXPECT_GT(status.loss, 0);
  EXPECT_NE(status.pid, 0);
  const RunRecord record = read_run_file(folder / "run.h5");
  EXPECT_EQ(record.status, RunState::failed);
  EXPECT_EQ(record.tables.at("layers").column("update"), (std::vector<double>{1, 3}))
      << "the first and the newest";
}

TEST(TablesTest, UnitsAndDefinitionsAreThoseOfTheRun) {
  for (const auto& [loss, units] : {std::pair{"cross_entropy", "nat"}, {"mse", "1"}}) {
    const TemporaryFolder folder;
    RunSettings s = small_settings();
    s.train.loss = loss;
    s.train.updates = 1;
    s.optimizer = "lars";
    RecordedRun run(s, folder.path());
    run.finish();
    const RunRecord record = read_run_file(folder / "run.h5");
    for (const auto& [name, table] : record.tables) {
      for (const Column& column : table.columns) {
        const bool is_loss = column.name == "loss" || column.name.ends_with("_loss");
        if (is_loss) {
          EXPECT_EQ(column.units, units) << name << '.' << column.name;
        }
        if (column.name == "trust_ratio") {
          EXPECT_EQ(column.definition, run.optimizer->trust_ratio_definition());
        }
      }
    }
  }
}

}  // namespace
}  // namespace basin::testing
