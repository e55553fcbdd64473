// `basin probe` seen from outside: what is written, skipped, refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/checkpoint.h"
#include "io/probe_file.h"
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
  ProbeRecord record(const std::string& name) const { return read_probe_file(folder_ + "/probes/" + name + ".h5"); }

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

TEST_F(ProbeCommand, MeasuresACheckpointAndSaysOnWhat) {
  const BinaryResult result = probe({"--only", "top_eigenvalues", "--subset", "50", "--dtype", "float64"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  const ProbeRecord found = record("end.top_eigenvalues");
  EXPECT_EQ(found.status, "ok");
  EXPECT_EQ(found.run_id, fs::path(folder_).filename().string());
  EXPECT_EQ(attribute(found, "n_examples"), OptionValue(int64_t{50}));
  EXPECT_EQ(attribute(found, "dtype"), OptionValue(std::string("float64")));
  EXPECT_EQ(attribute(found, "update"), OptionValue(int64_t{6}));
  EXPECT_EQ(attribute(found, "bn_mode"), OptionValue(std::string("none")));
  EXPECT_EQ(std::get<std::string>(attribute(found, "subset_hash")).size(), 64u);
  ASSERT_FALSE(found.quantities.empty());
  EXPECT_TRUE(std::isfinite(found.quantities.front().value.at(0)));
}

TEST_F(ProbeCommand, SkipsWhatIsMeasuredAndMeasuresOtherSettings) {
  const std::vector<std::string> arguments = {"--only", "top_eigenvalues", "--subset", "50"};
  ASSERT_EQ(probe(arguments).exit_code, 0);
  const auto path = folder_ + "/probes/end.top_eigenvalues.h5";
  const auto first = fs::last_write_time(path);
  EXPECT_THAT(probe(arguments).out, HasSubstr("measured before"));
  EXPECT_EQ(fs::last_write_time(path), first);
  EXPECT_EQ(probe({"--only", "top_eigenvalues", "--subset", "40"}).exit_code, 0);
  EXPECT_EQ(attribute(record("end.top_eigenvalues"), "n_examples"), OptionValue(int64_t{40}));
  const auto second = fs::last_write_time(path);
  EXPECT_EQ(probe({"--only", "top_eigenvalues", "--subset", "40", "--force"}).exit_code, 0);
  EXPECT_NE(fs::last_write_time(path), second);
}

TEST_F(ProbeCommand, TakesSeveralCheckpointsAndProbes) {
  const BinaryResult result =
      probe({"--only", "top_eigenvalues,noise_scale", "--checkpoint", "start,end", "--subset", "40"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  for (const char* name : {"start.top_eigenvalues", "end.top_eigenvalues", "start.noise_scale", "end.noise_scale"}) {
    EXPECT_EQ(record(name).checkpoint, std::string(name).substr(0, std::string(name).find('.')));
  }
}

TEST_F(ProbeCommand, NonfiniteParametersAreAStatus) {
  const std::string path = folder_ + "/ckpt/end.h5";
  Checkpoint checkpoint = read_checkpoint(path);
  checkpoint.parameters.front().tensor.fill_(std::numeric_limits<double>::quiet_NaN());
  write_checkpoint(path, checkpoint);
  EXPECT_EQ(probe({"--only", "top_eigenvalues"}).exit_code, 0);
  EXPECT_EQ(record("end.top_eigenvalues").status, "nonfinite");
}

TEST_F(ProbeCommand, RefusesBadInputInOneLine) {
  const auto expect = [](const BinaryResult& result, int exit_code, const std::string& part) {
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(part));
  };
  expect(probe({"--only", "no_such_probe"}), 2, "no_such_probe");
  expect(probe({"--set", "batch_size=5"}), 2, "batch_size");
  expect(probe({"--checkpoint", "loss-9"}), 2, "checkpoint");
  expect(run_binary({"probe", study_.path("nowhere")}), 4, "nowhere");
  truncate_file(folder_ + "/ckpt/end.h5", 0.6);
  expect(probe({}), 4, "end.h5");
}

}  // namespace
}  // namespace basin::testing
