// `basin train` seen from outside: files, bad input, interruption.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <set>
#include <thread>

#include "core/files.h"
#include "data/load.h"
#include "io/checkpoint.h"
#include "io/run_file.h"
#include "io/status_file.h"
#include "study/run_options.h"
#include "tests/apps/tiny_study.h"
#include "tests/support/environment.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// One line, from main, with this exit code.
void expect_error(const BinaryResult& result, int exit_code, const std::vector<std::string>& parts) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.err.rfind("basin: ", 0), 0u) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  for (const std::string& part : parts) EXPECT_THAT(result.err, HasSubstr(part));
}

TEST(TrainCommand, LeavesARunWithItsFiles) {
  const TinyStudy study({"loss_levels = [2.0, 1.0]", "updates = 30", "check_every = 200"});
  const BinaryResult result = study.train({"--set", "runtime.progress=true"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, ::testing::ContainsRegex(" 30/30 updates .*finished\n$"));
  const std::string folder = study.run_folder();
  EXPECT_THAT(result.out,
              ::testing::ContainsRegex(
                  "/runs/[0-9a-f]+ finished  training loss [0-9.e+-]+, test accuracy [0-9.]+ %\n$"));
  for (const char* file :
       {"config.toml", "journal", "run.log", "ckpt/start.h5", "ckpt/end.h5", "ckpt/loss-2.h5"}) {
    EXPECT_TRUE(fs::exists(folder + "/" + file)) << file;
  }
  const RunRecord record = read_run_file(folder + "/run.h5");
  EXPECT_EQ(record.status, RunState::finished);
  EXPECT_EQ(record.header.run_id, fs::path(folder).filename().string());
  EXPECT_EQ(record.tables.at("train").row_count(), 30);
  EXPECT_EQ(record.outcomes.at("test").loss.size(), 60u);
  EXPECT_EQ(record.header.config, read_file(folder + "/config.toml"));
  const RunStatus status = read_status(folder + "/status.json");
  EXPECT_EQ(status.status, RunState::finished);
  // Also of a run that is over before a speed on the way was measured.
  const std::map<std::string, OptionValue> summary(record.summary.begin(), record.summary.end());
  EXPECT_GT(status.images_per_second, 0);
  EXPECT_DOUBLE_EQ(status.images_per_second, std::get<double>(summary.at("images_per_second")));
  EXPECT_EQ(read_checkpoint(folder + "/ckpt/end.h5").update, 30);
}

TEST(TrainCommand, ReturnsAtOnceWhereTheRunIsDone) {
  const TinyStudy study;
  ASSERT_EQ(study.train().exit_code, 0);
  const auto written = fs::last_write_time(study.run_folder() + "/run.h5");
  EXPECT_EQ(study.train().exit_code, 0);
  EXPECT_EQ(fs::last_write_time(study.run_folder() + "/run.h5"), written);
}

TEST(TrainCommand, ConfigOfARunIsAStudyOfTheSameRun) {
  const TinyStudy study;
  ASSERT_EQ(study.train().exit_code, 0);
  const std::string folder = study.run_folder();
  const BinaryResult again = run_binary({"train", folder + "/config.toml", "--out", study.path("out")});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr(fs::path(folder).filename().string()));
}

TEST(TrainCommand, RecordsNormsByParameter) {
  const TinyStudy study({"layers_every = 4"});  // of 6 updates
  ASSERT_EQ(study.train().exit_code, 0);
  const Table table = read_run_file(study.run_folder() + "/run.h5").tables.at("layers");
  EXPECT_EQ(table.columns.at(1).labels.size(), 4u) << "two layers, weight and bias";
  EXPECT_THAT(table.column("update"), ::testing::ElementsAre(1, 4, 6));
  EXPECT_EQ(table.attributes, (decltype(table.attributes){{"every", int64_t{4}}}));
}

std::map<std::string, OptionValue> options_of_run(const std::vector<std::string>& tables) {
  const TinyStudy study({}, tables);
  const BinaryResult result = study.train();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const RunRecord record = read_run_file(study.run_folder() + "/run.h5");
  return {record.header.options.begin(), record.header.options.end()};
}

TEST(TrainCommand, RecordsWhatFactorsByParameterCameTo) {
  using Names = std::vector<std::string>;
  std::map<std::string, OptionValue> options = options_of_run(
      {"[sgd]", "lr_factors = [\"bias=2\", \"name:fc2*=0.1\"]", "decay_factors = [\"weight=0.5\"]"});
  EXPECT_EQ(options.at("learning_rate_factors"),
            OptionValue(Names{"fc1.bias=2", "fc2.weight=0.1", "fc2.bias=0.1"}));
  EXPECT_EQ(options.at("weight_decay_factors"), OptionValue(Names{"fc1.weight=0.5", "fc2.weight=0.5"}));
  options = options_of_run({});
  EXPECT_EQ(options.at("learning_rate_factors"), OptionValue(Names{}));
  EXPECT_EQ(options.at("weight_decay_factors"), OptionValue(Names{}));
}

TEST(TrainCommand, DivergenceIsAResult) {
  const TinyStudy study({"learning_rate = 1e8", "updates = 50"});
  const BinaryResult result = study.train();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const RunRecord record = read_run_file(study.run_folder() + "/run.h5");
  EXPECT_EQ(record.status, RunState::diverged);
  EXPECT_THAT(record.status_message, HasSubstr("batch loss"));
}

TEST(TrainCommand, PrintsTheConfiguration) {
  const TinyStudy study;
  const BinaryResult result = study.train({"--print-config", "--set", "lamb.beta1=0.8"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("beta1 = 0.8"));
  EXPECT_THAT(result.out, HasSubstr("batch_size = 64"));
  EXPECT_FALSE(fs::exists(study.path("out")));
}

TEST(TrainCommand, TheStudysRulesHoldForASingleRun) {
  // tiny.toml gives LAMB a learning rate of 0.02 by a rule; the base, which SGD takes, is 0.05.
  const std::string study = source_folder() + "/configs/tiny.toml";
  const auto config = [&](const std::string& set) {
    return run_binary({"train", study, "--print-config", "--set", set, "--set", "batch_size=128"}).out;
  };
  EXPECT_THAT(config("optimizer=lamb"), HasSubstr("\nlearning_rate = 0.02 "));
  EXPECT_THAT(config("optimizer=sgd"), HasSubstr("\nlearning_rate = 0.05 "));
  EXPECT_THAT(config("optimizer=lamb"), HasSubstr("\nbatch_size = 128 "));
}

TEST(TrainCommand, SetsWinOverTheFile) {
  const TinyStudy study;
  ASSERT_EQ(study.train({"--set", "updates=3", "--set", "mlp.hidden=[4, 3]"}).exit_code, 0);
  const RunRecord record = read_run_file(study.run_folder() + "/run.h5");
  EXPECT_EQ(record.tables.at("train").row_count(), 3);
  EXPECT_EQ(record.header.parameters.size(), 6u);
}

// --- bad input: one line that names file, line, key and constraint ---

TEST(TrainCommandBadInput, NamesUnknownKeyWithItsLine) {
  const TinyStudy study({}, {"[sgd]", "momentun = 0.9"});
  expect_error(study.train(), 2, {"study.toml:", "sgd.momentun", "sgd.momentum"});
  const std::string text = read_file(study.study());
  const auto line =
      std::count(text.begin(), text.begin() + static_cast<int64_t>(text.find("momentun")), '\n') + 1;
  expect_error(study.train(), 2, {"study.toml:" + std::to_string(line)});
}

TEST(TrainCommandBadInput, NamesWrongTypes) {
  expect_error(TinyStudy({"updates = \"many\""}).train(), 2, {"study.toml:", "updates"});
  expect_error(TinyStudy({"updates = 1.5"}).train(), 2, {"study.toml:", "updates"});
}

TEST(TrainCommandBadInput, NamesValuesOutOfRange) {
  for (const char* batch : {"0", "-5"}) {
    expect_error(TinyStudy({std::string("batch_size = ") + batch}).train(), 2,
                 {"study.toml:", "batch_size", "1"});
  }
  expect_error(TinyStudy().train({"--set", "batch_size=0"}), 2, {"--set", "batch_size"});
  expect_error(TinyStudy({"learning_rate = -0.1"}).train(), 2, {"learning_rate"});
  expect_error(TinyStudy({"protocol = \"C\""}).train(), 2, {"protocol", "A-epochs"});
  expect_error(TinyStudy({"epochs = inf"}).train(), 2, {"study.toml:", "epochs = inf is not finite"});
  expect_error(TinyStudy({"protocol = \"A-epochs\"", "epochs = 1e300"}).train(), 2,
               {"epochs = 1e+300", "2^53"});
  expect_error(TinyStudy({"loss_levels = [1.0, 1.0000001]"}).train(), 2, {"loss_levels", "loss-1"});
}

TEST(TrainCommandBadInput, NamesRelationsBetweenOptions) {
  const TinyStudy study({"ghost_batch = 24"}, {"[mlp]", "norm = \"batch\""});
  // A table may stand once in TOML, so the norm comes from the command line.
  const TinyStudy other({"ghost_batch = 24"});
  expect_error(other.train({"--set", "mlp.norm=batch"}), 2, {"micro_batch = 32", "ghost_batch (24)"});
  expect_error(study.train(), 2, {"study.toml:"});
}

TEST(TrainCommandBadInput, NamesMissingStudyAndSyntaxErrors) {
  expect_error(run_binary({"train", "nowhere/study.toml"}), 4, {"nowhere/study.toml"});
  const TinyStudy study({}, {"[sgd", "momentum = "});
  expect_error(study.train(), 2, {"study.toml:"});
}

TEST(TrainCommandBadInput, WhatCanNotBeginLeavesNothing) {
  const TinyStudy study;
  expect_error(study.train({"--set", "data.set=cifar10", "--set", "data.path=/nowhere/cifar"}), 3,
               {"/nowhere/cifar"});
  EXPECT_FALSE(fs::exists(study.path("out")));
}

TEST(TrainCommandBadInput, AMissingDeviceLeavesNothing) {
  if (at::hasCUDA() && at::getNumGPUs() > 0) GTEST_SKIP() << "there is a GPU";
  const TinyStudy study;
  expect_error(study.train({"--set", "runtime.device=cuda"}), 5, {"device = \"cuda\""});
  EXPECT_FALSE(fs::exists(study.path("out")));
}

const std::string kOtherHash(64, 'f');

void name_other_data(std::vector<std::pair<std::string, OptionValue>>& data) {
  for (auto& [key, value] : data) {
    if (key == "sha256") value = kOtherHash;
  }
}

// Nothing goes on from a run that is done, and a lost status.json is no reason to train it again.
TEST(TrainCommand, ADoneRunKeepsItsMilestonesAlone) {
  const TinyStudy study({"checkpoint_seconds = 0"});
  ASSERT_EQ(study.train().exit_code, 0);
  std::set<std::string> kept;
  for (const auto& entry : fs::directory_iterator(study.run_folder() + "/ckpt"))
    kept.insert(entry.path().filename());
  EXPECT_THAT(kept, ::testing::ElementsAre("end.h5", "start.h5"));
  const RunStatus before = read_status(study.run_folder() + "/status.json");
  const auto trained = fs::last_write_time(study.run_folder() + "/journal");
  fs::remove(study.run_folder() + "/status.json");
  const BinaryResult again = study.train();
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("finished"));
  EXPECT_EQ(fs::last_write_time(study.run_folder() + "/journal"), trained);
  const RunStatus after = read_status(study.run_folder() + "/status.json");
  EXPECT_EQ(after.run_id, before.run_id);
  EXPECT_EQ(after.status, RunState::finished);
  EXPECT_EQ(after.update, before.update);
  EXPECT_EQ(after.done, 1);
}

// data.path is no part of a run's id, so other images may lie there than those that the run was trained on.
TEST(TrainCommandBadInput, ADoneRunOfOtherDataIsNotTakenForThisOne) {
  const TinyStudy study;
  ASSERT_EQ(study.train().exit_code, 0);
  const std::string path = study.run_folder() + "/run.h5";
  RunRecord record = read_run_file(path);
  const std::string ours =
      load_dataset(run_options_from(parse_toml(record.header.config, "c"), {}).data).sha256;
  name_other_data(record.header.data);
  write_run_file(path, record);
  expect_error(study.train(), 4, {"run.h5", "other data", kOtherHash, ours});
  EXPECT_EQ(read_status(study.run_folder() + "/status.json").status, RunState::finished)
      << "the run itself is none the worse";
}

TEST(TrainCommandBadInput, UsageErrorsExitWithTwo) {
  expect_error(run_binary({}), 2, {"a subcommand is required: init, train, probe, measure, audit, sweep"});
  expect_error(run_binary({"train"}), 2, {"study is required", "(basin train --help)"});
  expect_error(run_binary({"sweeep", "study.toml", "--dry-run"}), 2, {"\"sweeep\"; did you mean \"sweep\"?"});
  expect_error(run_binary({"no-such-command"}), 2, {"\"no-such-command\"; known: init, train, "});
  expect_error(run_binary({"data", "chekc"}), 2,
               {"\"chekc\"; did you mean \"check\"?", "(basin data --help)"});
  expect_error(run_binary({"sweep", "study.toml", "--dryrun"}), 2,
               {"\"--dryrun\"; did you mean \"--dry-run\"?"});
  expect_error(run_binary({"sweep", "study.toml", "--jobs", "0"}), 2, {"--jobs", "range"});
  const BinaryResult help = run_binary({"train", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("--print-config"));
}

// --- interruption ---

std::vector<std::string> long_run() {
  return {"updates = 800", "checkpoint_seconds = 0.05", "evaluate_every = 9600"};
}

// Waits until the journal has grown by `bytes` since now.
void wait_for_progress(RunningBinary& process, const TinyStudy& study, uintmax_t bytes) {
  const auto size = [&]() -> uintmax_t {
    std::error_code missing;
    const std::string runs = study.path("out/runs");
    if (!fs::exists(runs, missing) || fs::is_empty(runs, missing)) return 0;  // made one after the other
    const uintmax_t found = fs::file_size(study.run_folder() + "/journal", missing);
    return missing ? 0 : found;
  };
  const uintmax_t before = size();
  while (process.alive() && size() < before + bytes)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

TEST(TrainCommandInterrupted, ThreeKillsChangeNothingButTimes) {
  const TinyStudy undisturbed(long_run()), killed(long_run());
  ASSERT_EQ(undisturbed.train().exit_code, 0);
  int kills = 0;
  for (int i = 0; i < 3; ++i) {
    RunningBinary process(killed.train_arguments());
    wait_for_progress(process, killed, 12000);
    process.send(SIGKILL);
    if (process.wait().exit_code == 128 + SIGKILL) ++kills;
  }
  EXPECT_EQ(kills, 3) << "the run ended before it could be killed";
  const BinaryResult last = killed.train();
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_THAT(read_file(killed.run_folder() + "/run.log"), HasSubstr("resumed from update"));
  EXPECT_EQ(comparable(read_run_file(killed.run_folder() + "/run.h5")),
            comparable(read_run_file(undisturbed.run_folder() + "/run.h5")));
  const Checkpoint a = read_checkpoint(killed.run_folder() + "/ckpt/end.h5");
  const Checkpoint b = read_checkpoint(undisturbed.run_folder() + "/ckpt/end.h5");
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    EXPECT_TRUE(a.parameters[i].tensor.equal(b.parameters[i].tensor)) << a.parameters[i].name;
  }
}

TEST(TrainCommandInterrupted, CtrlCLeavesAResumableState) {
  const TinyStudy study(long_run());
  for (const int signal : {SIGINT, SIGTERM}) {
    RunningBinary process(study.train_arguments());
    wait_for_progress(process, study, 10000);
    process.send(signal);
    const BinaryResult result = process.wait();
    EXPECT_EQ(result.exit_code, 128 + signal) << result.err;
    EXPECT_EQ(read_run_file(study.run_folder() + "/run.h5").status, RunState::interrupted);
    EXPECT_EQ(read_status(study.run_folder() + "/status.json").status, RunState::interrupted);
  }
  EXPECT_EQ(study.train().exit_code, 0);
  EXPECT_EQ(read_run_file(study.run_folder() + "/run.h5").tables.at("train").row_count(), 800);
}

// A run that stopped half-way, with two checkpoints to go on from.
struct InterruptedStudy : TinyStudy {
  InterruptedStudy() : TinyStudy(long_run()) {
    RunningBinary process(train_arguments());
    wait_for_progress(process, *this, 20000);
    // Ctrl-C leaves another next to it.
    while (process.alive() && !fs::exists(run_folder() + "/ckpt/latest.h5"))
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    process.send(SIGINT);
    EXPECT_EQ(process.wait().exit_code, 130);
    EXPECT_TRUE(fs::exists(run_folder() + "/ckpt/previous.h5"));
  }
};

std::map<std::string, std::string> files_in(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[entry.path().string()] = read_file(entry.path().string());
  return files;
}

TEST(TrainCommandInterrupted, IsLeftAloneByACommandThatCanNotBegin) {
  if (at::hasCUDA() && at::getNumGPUs() > 0) GTEST_SKIP() << "there is a GPU";
  const InterruptedStudy study;
  const auto before = files_in(study.run_folder());
  expect_error(study.train({"--set", "runtime.device=cuda"}), 5, {"device = \"cuda\""});
  EXPECT_EQ(files_in(study.run_folder()), before);
  EXPECT_EQ(study.train().exit_code, 0);
}

TEST(TrainCommandInterrupted, FallsBackToTheOlderCheckpoint) {
  const InterruptedStudy study;
  truncate_file(study.run_folder() + "/ckpt/latest.h5", 0.5);
  const BinaryResult result = study.train();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(read_file(study.run_folder() + "/run.log"), HasSubstr("trying an older checkpoint"));
  EXPECT_EQ(read_run_file(study.run_folder() + "/run.h5").tables.at("train").row_count(), 800);
}

TEST(TrainCommandInterrupted, TellsWhereNoCheckpointIsLeft) {
  const InterruptedStudy study;
  truncate_file(study.run_folder() + "/ckpt/latest.h5", 0.5);
  truncate_file(study.run_folder() + "/ckpt/previous.h5", 0.5);
  expect_error(study.train(), 4, {"latest.h5", "remove", study.run_folder()});
}

TEST(TrainCommandInterrupted, IsNotResumedOnOtherData) {
  const InterruptedStudy study;
  for (const char* label : {"latest", "previous"}) {
    const std::string path = study.run_folder() + "/ckpt/" + label + ".h5";
    Checkpoint checkpoint = read_checkpoint(path);
    name_other_data(checkpoint.data);
    write_checkpoint(path, checkpoint);
  }
  expect_error(study.train(), 4, {"latest.h5", "other data", kOtherHash});
}

TEST(TrainCommandInterrupted, TellsOfATruncatedJournal) {
  const InterruptedStudy study;
  truncate_file(study.run_folder() + "/journal", 0.4);
  expect_error(study.train(), 4, {"journal", "truncated"});
}

TEST(TrainCommandInterrupted, TellsOfADamagedJournal) {
  const InterruptedStudy study;
  const std::string path = study.run_folder() + "/journal";
  std::string bytes = read_file(path);
  bytes[bytes.size() / 3] = static_cast<char>(bytes[bytes.size() / 3] ^ 0x55);
  write_text(path, bytes);
  expect_error(study.train(), 4, {"journal"});
}

TEST(TrainCommandInterrupted, RefusesARunInUse) {
  const TinyStudy study(long_run());
  RunningBinary first(study.train_arguments());
  wait_for_progress(first, study, 5000);
  expect_error(study.train(), 4, {"in use"});
  first.send(SIGINT);
  first.wait();
}

}  // namespace
}  // namespace basin::testing
