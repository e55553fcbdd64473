#include <gmock/gmock.h>
#include <CLI/CLI.hpp>

#include "apps/subcommands.h"
#include "core/error.h"
#include "core/file_lock.h"
#include "core/files.h"
#include "io/checkpoint.h"
#include "io/journal.h"
#include "io/probe_file.h"
#include "io/run_file.h"
#include "io/status_file.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

/// What `basin ARGUMENTS` prints; nothing on stdout where it throws.
std::string output_of(const std::vector<std::string>& arguments) {
  CLI::App app;
  Action action;
  add_inspect(app, action);
  add_recover(app, action);
  app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 takes them last first
  ::testing::internal::CaptureStdout();
  try {
    EXPECT_EQ(action(), 0);
  } catch (...) {
    std::fflush(stdout);
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
    throw;
  }
  std::fflush(stdout);
  return ::testing::internal::GetCapturedStdout();
}

void write_journal(const std::string& path, RunState status = RunState::finished) {
  RunHeader header;
  header.run_id = "0123456789ab";
  header.options = {{"batch_size", int64_t{512}}};
  JournalWriter journal = JournalWriter::create(path, header);
  journal.define_table(
      {"train", "training", {{"update", "1", "u", "u", 1, {}}, {"loss", "nat", "l", "l", 1, {}}}, {}});
  journal.append_row("train", {1, 2.5});
  journal.append_row("train", {2, 2.25});
  journal.set_summary({{"test_acc", 0.625}, {"validation_loss", std::nan("")}});
  journal.set_status(status, "");
}

TEST(Recover, RebuildsRunH5FromTheJournal) {
  TemporaryFolder folder;
  write_journal(folder / "journal");
  std::ofstream(folder / "journal", std::ios::app) << "torn";
  std::ofstream(folder / "run.h5") << "damaged";
  const std::string told = output_of({"recover", folder.path()});
  EXPECT_THAT(told, HasSubstr("0123456789ab"));
  EXPECT_THAT(told, HasSubstr("cut off"));
  const RunRecord run = read_run_file(folder / "run.h5");
  EXPECT_EQ(run.status, RunState::finished);
  EXPECT_EQ(run.tables.at("train").column("loss"), (std::vector<double>{2.5, 2.25}));
}

void write_final_status(const std::string& folder, int64_t update) {
  RunStatus status;
  status.run_id = "0123456789ab";
  status.status = RunState::finished;
  status.update = update;
  write_status(folder + "/status.json", status);
}

// The journal has lost how the run ended: nobody is at it, so it isn't running.
TEST(Recover, WhatIsNotKnownToHaveEndedWasInterrupted) {
  TemporaryFolder folder;
  write_journal(folder / "journal", RunState::running);
  EXPECT_THAT(output_of({"recover", folder.path()}),
              HasSubstr("status interrupted (its journal ends after update 2)"));
  EXPECT_EQ(read_run_file(folder / "run.h5").status, RunState::interrupted);

  write_final_status(folder.path(),
                     3);  // of which the journal has two: a sweep must not take the run for done
  EXPECT_THAT(output_of({"recover", folder.path()}), HasSubstr("status interrupted"));
  EXPECT_EQ(read_status(folder / "status.json").status, RunState::interrupted);
}

TEST(Recover, TakesTheFinalStatusWhereTheResultsAreThere) {
  TemporaryFolder folder;
  write_journal(folder / "journal", RunState::running);
  write_final_status(folder.path(), 2);
  std::ofstream(folder / "run.h5") << "damaged";
  EXPECT_THAT(output_of({"recover", folder.path()}), HasSubstr("status finished"));
  EXPECT_EQ(read_run_file(folder / "run.h5").status, RunState::finished);
  EXPECT_EQ(read_status(folder / "status.json").status, RunState::finished);
}

TEST(Recover, LeavesAWholeFileThatKnowsMoreThanTheJournal) {
  TemporaryFolder folder;
  write_journal(folder / "journal");
  output_of({"recover", folder.path()});
  std::filesystem::remove(folder / "journal");
  write_journal(folder / "journal", RunState::running);
  EXPECT_THAT(output_of({"recover", folder.path()}), HasSubstr("complete, status finished, 2 updates"));
  EXPECT_EQ(read_run_file(folder / "run.h5").status, RunState::finished);
}

TEST(Recover, RefusesARunInUse) {
  TemporaryFolder folder;
  write_journal(folder / "journal", RunState::running);
  const FileLock lock(folder / "lock", "the test");
  EXPECT_THROW(output_of({"recover", folder.path()}), IoError);
}

TEST(Recover, AFolderWithoutAJournalIsAnError) {
  TemporaryFolder folder;
  EXPECT_THROW(output_of({"recover", folder.path()}), IoError);
  EXPECT_FALSE(std::filesystem::exists(folder / "run.h5"));
}

TEST(Recover, ASweepFolderIsSaidToBeOne) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "runs");
  const auto told = [&](const std::string& command) -> std::string {
    try {
      return output_of({command, folder.path()});
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  EXPECT_THAT(told("recover"), HasSubstr("is the folder of a sweep: name one of its runs"));
  EXPECT_THAT(told("inspect"), HasSubstr("is the folder of a sweep without sweep.h5: run `basin collect "));
}

TEST(Inspect, SaysWhatIsInARunAndItsJournal) {
  TemporaryFolder folder;
  write_journal(folder / "journal");
  output_of({"recover", folder.path()});
  for (const std::string& path : {folder.path(), folder / "run.h5", folder / "journal"}) {
    const std::string told = output_of({"inspect", path});
    EXPECT_THAT(told, HasSubstr("run 0123456789ab"));
    EXPECT_THAT(told, HasSubstr("test_acc = 0.625"));
    EXPECT_EQ(told.find("test_acc = "), told.rfind("test_acc = ")) << "said once";
    EXPECT_THAT(told, HasSubstr("validation_loss = not measured"));
    EXPECT_THAT(told, HasSubstr("train: 2 rows x 2 columns"));
  }
  EXPECT_THAT(output_of({"inspect", folder.path()}), HasSubstr("batch_size = 512"));
}

TEST(Inspect, SaysWhatIsInACheckpointAndAProbeFile) {
  TemporaryFolder folder;
  Checkpoint checkpoint;
  checkpoint.label = "end";
  checkpoint.update = 7;
  checkpoint.parameters = {{"fc.weight", "fc", ParameterKind::weight, at::zeros({4, 3})},
                           {"fc.bias", "fc", ParameterKind::bias, at::zeros({4})}};
  write_checkpoint(folder / "end.h5", checkpoint);
  const std::string of_checkpoint = output_of({"inspect", folder / "end.h5"});
  EXPECT_THAT(of_checkpoint, HasSubstr("after 7 updates: 16 parameters in 2 tensors"));
  EXPECT_THAT(of_checkpoint, HasSubstr("[4 x 3]"));

  ProbeRecord probe;
  probe.probe = "top_eigenvalues";
  probe.quantities = {
      {"lambda", "d", "u", "l", UncertaintyKind::residual, ProbeStatus::ok, {3.5, 2}, {0.001, 0.002}}};
  write_probe_file(folder / "probe.h5", probe);
  const std::string of_probe = output_of({"inspect", folder / "probe.h5"});
  EXPECT_THAT(of_probe, HasSubstr("lambda_1"));
  EXPECT_THAT(of_probe, HasSubstr("3.5"));
  EXPECT_THAT(of_probe, HasSubstr("residual"));
}

TEST(Inspect, ListsTheRegistries) {
  EXPECT_THAT(output_of({"inspect", "--list", "models"}), HasSubstr("small_cnn"));
  EXPECT_THAT(output_of({"inspect", "--list", "optimizers"}), HasSubstr("lamb"));
  EXPECT_THAT(output_of({"inspect", "--list", "schedules"}), HasSubstr("cosine"));
  EXPECT_THAT(output_of({"inspect", "--list", "datasets"}), HasSubstr("cifar10-5k"));
  EXPECT_THAT(output_of({"inspect", "--list", "probes"}), HasSubstr("top_eigenvalues"));
  EXPECT_THAT(output_of({"inspect", "--list", "hooks"}), HasSubstr("clip_gradient"));
  EXPECT_THAT(output_of({"inspect", "--list", "landscapes"}), HasSubstr("plane.norm"));
  EXPECT_THROW(output_of({"inspect", "--list", "nonsense"}), CLI::ValidationError);
}

TEST(Inspect, AMissingOrForeignFileIsAnError) {
  TemporaryFolder folder;
  EXPECT_THROW(output_of({"inspect", folder / "no.h5"}), IoError);
  EXPECT_THROW(output_of({"inspect", folder.path()}), IoError);
  std::ofstream(folder / "text") << "text";
  EXPECT_THROW(output_of({"inspect", folder / "text"}), IoError);
  EXPECT_THROW(output_of({"inspect"}), ConfigError);
}

}  // namespace
}  // namespace basin
