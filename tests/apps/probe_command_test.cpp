// `basin probe` seen from outside: what is written, skipped, refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/files.h"
#include "io/checkpoint.h"
#include "io/h5.h"
#include "io/probe_file.h"
#include "io/run_file.h"
#include "io/schema.h"
#include "tests/apps/tiny_study.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ProbeCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    const BinaryResult result = study_.train();
    ASSERT_EQ(result.exit_code, 0) << result.err;
    folder_ = study_.run_folder();
  }
  BinaryResult probe(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"probe", folder_, "--set", "runtime.threads=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_binary(arguments);
  }
  ProbeRecord record(const std::string& name) const {
    return read_probe_file(folder_ + "/probes/" + name + ".h5");
  }

  TinyStudy study_;
  std::string folder_;
};

OptionValue attribute(const ProbeRecord& record, const std::string& key) {
  for (const auto& [name, value] : record.attributes) {
    if (name == key) return value;
  }
  ADD_FAILURE() << "no attribute " << key;
  return std::string();
}

TEST_F(ProbeCommand, ACheckpointThatIsNotThereIsToldFromThoseThatAre) {
  const BinaryResult result = probe({"--only", "top_eigenvalues", "--checkpoint", "middle"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr(": unknown checkpoint \"middle\"; known: start, end\n"));
}

TEST_F(ProbeCommand, MeasuresACheckpointAndSaysOnWhat) {
  const BinaryResult result = probe({"--only", "top_eigenvalues", "--subset", "50", "--dtype", "float64"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  const ProbeRecord found = record("end.top_eigenvalues");
  EXPECT_EQ(found.status, ProbeStatus::ok);
  EXPECT_EQ(found.run_id, fs::path(folder_).filename().string());
  EXPECT_EQ(attribute(found, "n_examples"), OptionValue(int64_t{50}));
  EXPECT_EQ(attribute(found, "dtype"), OptionValue(std::string("float64")));
  EXPECT_EQ(attribute(found, "update"), OptionValue(int64_t{6}));
  EXPECT_EQ(attribute(found, "bn_mode"), OptionValue(std::string("none")));
  EXPECT_EQ(std::get<std::string>(attribute(found, "subset_hash")).size(), 64u);
  ASSERT_FALSE(found.quantities.empty());
  EXPECT_TRUE(std::isfinite(found.quantities.front().value.at(0)));
}

TEST_F(ProbeCommand, HandsOverTheInitialWeights) {
  const BinaryResult result = probe({"--only", "pac_bayes", "--subset", "50", "--dtype", "float64"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  const Checkpoint start = read_checkpoint(folder_ + "/ckpt/start.h5"),
                   end = read_checkpoint(folder_ + "/ckpt/end.h5");
  double squared = 0;
  for (size_t i = 0; i < start.parameters.size(); ++i) {
    ASSERT_EQ(start.parameters[i].name, end.parameters[i].name);
    squared +=
        (end.parameters[i].tensor.to(at::kDouble) - start.parameters[i].tensor).square().sum().item<double>();
  }
  const double distance = std::get<double>(attribute(record("end.pac_bayes"), "distance_from_start"));
  EXPECT_GT(distance, 0);
  EXPECT_NEAR(distance, std::sqrt(squared), 1e-12 * distance);
}

TEST(ProbeAverage, MeasuresTheAveragedWeightsLikeAnyCheckpoint) {
  const TinyStudy study({"weight_average = 0.9", "label_smoothing = 0.2"});
  ASSERT_EQ(study.train().exit_code, 0);
  const std::string folder = study.run_folder();
  const BinaryResult result =
      run_binary({"probe", folder, "--checkpoint", "average", "--only", "noise_scale", "--subset", "0",
                  "--dtype", "float64", "--set", "runtime.threads=1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const ProbeRecord found = read_probe_file(folder + "/probes/average.noise_scale.h5");
  const RunRecord run = read_run_file(folder + "/run.h5");
  double average = NAN;
  for (const auto& [key, value] : run.summary)
    if (key == "average_train_loss") average = std::get<double>(value);
  // The probe's loss is without smoothing, of all training images in float64; the run's was summed over
  // float32 ones.
  EXPECT_NEAR(std::get<double>(attribute(found, "subset_loss")), average, 1e-6);
  EXPECT_EQ(attribute(found, "train_loss"), OptionValue(average));
}

// A search that began with the vectors of the checkpoint before would miss a direction that has overtaken them.
TEST(ProbeCadence, MeasuresEachCheckpointAsIfItWereAlone) {
  const TinyStudy study({"checkpoint_every = 2"});
  ASSERT_EQ(study.train().exit_code, 0);
  const std::string folder = study.run_folder(), path = folder + "/probes/u000006.top_eigenvalues.h5";
  std::vector<std::string> arguments = {
      "probe",    folder, "--checkpoint", "every",   "--only", "top_eigenvalues",
      "--subset", "50",   "--dtype",      "float64", "--set",  "runtime.threads=1"};
  ASSERT_EQ(run_binary(arguments).exit_code, 0);
  EXPECT_TRUE(fs::exists(folder + "/probes/u000002.top_eigenvalues.h5"));
  const ProbeRecord in_turn = read_probe_file(path);
  EXPECT_FALSE(fs::exists(path + ".partial"));
  fs::remove(path);
  arguments[3] = "u000006";
  ASSERT_EQ(run_binary(arguments).exit_code, 0);
  const ProbeRecord alone = read_probe_file(path);
  for (size_t i = 0; i < in_turn.quantities.size(); ++i)
    EXPECT_EQ(in_turn.quantities[i].value, alone.quantities[i].value);
}

TEST_F(ProbeCommand, SkipsWhatIsMeasuredAndKeepsOtherSettingsApart) {
  const std::vector<std::string> arguments = {"--only", "top_eigenvalues", "--subset", "50"};
  ASSERT_EQ(probe(arguments).exit_code, 0);
  const auto path = folder_ + "/probes/end.top_eigenvalues.h5";
  const auto first = fs::last_write_time(path);
  EXPECT_THAT(probe(arguments).out, HasSubstr("measured before"));
  EXPECT_EQ(fs::last_write_time(path), first);
  EXPECT_EQ(probe({"--only", "top_eigenvalues", "--subset", "40"}).exit_code, 0);
  EXPECT_EQ(fs::last_write_time(path), first);
  EXPECT_EQ(attribute(record("end.top_eigenvalues"), "n_examples"), OptionValue(int64_t{50}));
  EXPECT_EQ(probe({"--only", "top_eigenvalues", "--subset", "50", "--force"}).exit_code, 0);
  EXPECT_NE(fs::last_write_time(path), first);
}

TEST_F(ProbeCommand, HandMadeSettingsLeaveTheStudysNumberAlone) {
  // What a sweep leaves in a run's folder: the whole cell, with its probes.
  write_text(folder_ + "/cell.toml", read_file(study_.study()) +
                                         "[probes]\nrun = ['top_eigenvalues']\nat = ['end']\nsubset = 50\n"
                                         "[top_eigenvalues]\ncount = 1\n");
  ASSERT_EQ(probe({}).exit_code, 0);  // by the study's settings
  const std::string path = folder_ + "/probes/end.top_eigenvalues.h5";
  const auto written = fs::last_write_time(path);
  const ProbeRecord studys = record("end.top_eigenvalues");
  EXPECT_EQ(attribute(studys, "n_examples"), OptionValue(int64_t{50}));
  EXPECT_EQ(attribute(studys, "option.count"), OptionValue(int64_t{1}));
  EXPECT_FALSE(fs::exists(folder_ + "/probes/end.noise_scale.h5"));

  const BinaryResult by_hand =
      probe({"--only", "top_eigenvalues,sharpness_keskar", "--subset", "0", "--force"});
  ASSERT_EQ(by_hand.exit_code, 0) << by_hand.err;
  EXPECT_EQ(fs::last_write_time(path), written);
  EXPECT_FALSE(fs::exists(folder_ + "/probes/end.sharpness_keskar.h5"));

  ASSERT_EQ(run_binary({"collect", study_.path("out")}).exit_code, 0);
  const h5::File sweep = open_schema_file(study_.path("out") + "/sweep.h5", kSweepSchema);
  const h5::Group runs = sweep.group("runs"), probes = sweep.group("probes");
  const std::string column = "probe.end.top_eigenvalues.lambda_1";  // _1 also where there is one alone
  EXPECT_EQ(runs.dataset(column).read<double>()[0], studys.quantities.front().value[0]);
  EXPECT_FALSE(runs.has("probe.end.sharpness_keskar.phi_full_1e-3"));

  const auto of_study = probes.dataset("study").read<uint8_t>();
  const auto names = probes.dataset("quantity").read_texts(),
             settings = probes.dataset("settings").read_texts();
  const auto examples = probes.dataset("n_examples").read<double>();
  const auto full_loss = probes.dataset("train_loss").read<double>();
  const auto subset_loss = probes.dataset("subset_loss").read<double>();
  std::map<std::string, double> lambda_examples;  // by settings
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(examples[i], of_study[i] ? 50 : 200) << names[i];
    EXPECT_EQ(full_loss[i], runs.dataset("train_loss").read<double>()[0]);
    if (of_study[i])
      EXPECT_NE(subset_loss[i], full_loss[i]);
    else
      EXPECT_NEAR(subset_loss[i], full_loss[i], 1e-5);  // float32 in other micro-batches
    if (names[i] == "lambda") lambda_examples[settings[i]] = examples[i];
  }
  EXPECT_EQ(lambda_examples.size(), 2u);
}

// A sweep's cell.toml spells out every option, which leaves a tool's variant nothing but what is asked for by
// hand.
TEST_F(ProbeCommand, AToolsVariantAskedForByHandCountsOnARunOfASweep) {
  write_text(
      folder_ + "/cell.toml",
      read_file(study_.study()) +
          "[probes]\nrun = ['sharpness_sam']\nat = ['end']\nsubset = 50\n[sharpness_sam]\ncompat = 'none'\n"
          "rhos = [0.05]\nasam_rhos = [0.5]\neta = 0.02\nscaled = 'weights'\ngroup_size = 8\n");
  const BinaryResult result =
      probe({"--set", "sharpness_sam.group_size=10", "--set", "sharpness_sam.compat=davda54"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto files = fs::directory_iterator(folder_ + "/probes");
  const auto file = std::find_if(begin(files), end(files), [](const fs::directory_entry& entry) {
    return entry.path().filename().string().rfind("end.sharpness_sam.", 0) == 0;
  });
  const ProbeRecord found = read_probe_file(file->path());
  EXPECT_EQ(attribute(found, "option.scaled"), OptionValue(std::string("all")));
  EXPECT_EQ(attribute(found, "option.eta"), OptionValue(0.0));
  EXPECT_EQ(attribute(found, "option.group_size"), OptionValue(int64_t{10}));
}

TEST_F(ProbeCommand, AFailedProbeIsAFailure) {
  const BinaryResult result = probe({"--only", "margins,relative_flatness", "--checkpoint", "end", "--subset",
                                     "50", "--set", "relative_flatness.layer=\"none\""});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("end  relative_flatness  failed: "));
  EXPECT_THAT(result.err, ::testing::EndsWith("basin: " + folder_ + ": failed: end relative_flatness\n"));
}

TEST_F(ProbeCommand, ATruncatedCellIsNoStudy) {
  const std::string cell = read_file(study_.study()) + "[probes]\nrun = ['margins']\nsubset = 50\n";
  write_text(folder_ + "/cell.toml", cell.substr(0, cell.size() - 2));  // subset = 5
  const BinaryResult result = probe({});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("cell.toml: damaged or incomplete"));
}

TEST_F(ProbeCommand, MeasuresAgainAfterRetrainingOrAChangedEstimator) {
  const std::vector<std::string> arguments = {"--only", "top_eigenvalues", "--subset", "50"};
  ASSERT_EQ(probe(arguments).exit_code, 0);
  const std::string path = folder_ + "/ckpt/end.h5", file = folder_ + "/probes/end.top_eigenvalues.h5";
  Checkpoint checkpoint = read_checkpoint(path);
  write_checkpoint(path, checkpoint);  // the same content in a new file
  EXPECT_THAT(probe(arguments).out, HasSubstr("measured before"));
  checkpoint.parameters.front().tensor.flatten()[0] += 0.5;
  write_checkpoint(path, checkpoint);
  EXPECT_THAT(probe(arguments).out, ::testing::Not(HasSubstr("measured before")));

  ProbeRecord old = record("end.top_eigenvalues");
  for (auto& [key, value] : old.attributes) {
    if (key == "version") value = int64_t{0};
  }
  write_probe_file(file, old);
  EXPECT_THAT(probe(arguments).out, ::testing::Not(HasSubstr("measured before")));
  EXPECT_THAT(probe(arguments).out, HasSubstr("measured before"));
}

TEST_F(ProbeCommand, TakesSeveralCheckpointsAndProbes) {
  const BinaryResult result = probe({"--only", "top_eigenvalues,noise_scale", "--checkpoint", "start",
                                     "--checkpoint", "end", "--subset", "40"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_THAT(result.out, ::testing::ContainsRegex("lambda_1 .* \\+- [0-9].*\\("));
  EXPECT_THAT(result.out, ::testing::Not(HasSubstr("none")));  // what has no uncertainty says nothing of one
  for (const char* name :
       {"start.top_eigenvalues", "end.top_eigenvalues", "start.noise_scale", "end.noise_scale"}) {
    EXPECT_EQ(record(name).checkpoint, std::string(name).substr(0, std::string(name).find('.')));
  }
}

TEST_F(ProbeCommand, NonfiniteParametersAreAStatus) {
  const std::string path = folder_ + "/ckpt/end.h5";
  Checkpoint checkpoint = read_checkpoint(path);
  checkpoint.parameters.front().tensor.fill_(std::numeric_limits<double>::quiet_NaN());
  write_checkpoint(path, checkpoint);
  EXPECT_EQ(probe({"--only", "top_eigenvalues"}).exit_code, 0);
  const ProbeRecord found = record("end.top_eigenvalues");
  EXPECT_EQ(found.status, ProbeStatus::nonfinite);
  ASSERT_FALSE(found.quantities.empty());  // a row that says so, not a gap
  for (const Quantity& quantity : found.quantities) {
    EXPECT_EQ(quantity.status, ProbeStatus::nonfinite);
    EXPECT_TRUE(std::isnan(quantity.value.at(0)));
  }
}

TEST_F(ProbeCommand, RefusesOtherDataThanTheRunWasTrainedOn) {
  const std::string path = folder_ + "/ckpt/end.h5";
  Checkpoint checkpoint = read_checkpoint(path);
  for (auto& [key, value] : checkpoint.data) {
    if (key == "sha256" || key == "split_hash") value = std::string(64, '0');
  }
  write_checkpoint(path, checkpoint);
  const BinaryResult result = probe({"--only", "top_eigenvalues", "--subset", "40"});
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("checkpoint end"));
  EXPECT_FALSE(fs::exists(folder_ + "/probes/end.top_eigenvalues.h5"));
}

TEST_F(ProbeCommand, RefusesBadInputInOneLine) {
  const auto expect = [](const BinaryResult& result, int exit_code, const std::string& part) {
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(part));
  };
  expect(probe({"--only", "no_such_probe"}), 2, "no_such_probe");
  expect(probe({"--only", "top_eigenvalues", "noise_scale"}), 2,
         "\"noise_scale\" was not expected; lists are separated by commas");
  expect(probe({"--set", "batch_size=5"}), 2, "batch_size");
  expect(probe({"--checkpoint", "loss-9"}), 2, "checkpoint");
  expect(run_binary({"probe", study_.path("nowhere")}), 4, "nowhere");
  truncate_file(folder_ + "/ckpt/end.h5", 0.6);
  expect(probe({}), 4, "end.h5");
}

}  // namespace
}  // namespace basin::testing
