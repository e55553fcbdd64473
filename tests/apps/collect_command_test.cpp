// `basin collect` from outside: two halves of a sweep are the whole one, and what doesn't go together is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/files.h"
#include "io/run_file.h"
#include "io/schema.h"
#include "tests/apps/stored_numbers.h"
#include "tests/apps/tiny_sweep.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Both files' numbers, without what says where the runs came from.
std::map<std::string, std::string> collected_numbers(const std::string& folder) {
  std::map<std::string, std::string> numbers;
  for (const auto& [name, value] : stored_numbers(folder)) {
    const bool of_table = name.rfind("sweep.h5", 0) == 0 || name.rfind("table.md", 0) == 0;
    if (of_table && name.find("source") == std::string::npos && name.find("@study") == std::string::npos)
      numbers[name] = value;
  }
  return numbers;
}

class CollectCommand : public ::testing::Test {
 protected:
  BinaryResult half(const std::string& seeds, const std::string& out) const {
    return sweep_.run({"--set", "seed=" + seeds}, out);
  }
  BinaryResult collect(std::vector<std::string> words) const {
    words.insert(words.begin(), "collect");
    return run_binary(words);
  }
  std::string at(const std::string& name) const { return sweep_.path(name); }

  TinySweep sweep_{kTwoByTwo};
};

TEST_F(CollectCommand, TwoHalvesAreTheWholeSweep) {
  ASSERT_EQ(sweep_.run({}, "whole").exit_code, 0);
  ASSERT_EQ(half("1", "a").exit_code, 0);
  ASSERT_EQ(half("[1,2]", "b").exit_code, 0);  // seed 1 is in both: the same bits
  const BinaryResult merged = collect({at("a"), at("b"), "--out", at("c")});
  ASSERT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_EQ(merged.out, fmt::format("{0}/sweep.h5\n{0}/table.md\n", at("c")));
  const auto numbers = collected_numbers(at("whole"));
  EXPECT_GT(numbers.size(), 100u);
  EXPECT_THAT(differences(collected_numbers(at("c")), numbers), IsEmpty());
  const h5::File file = open_schema_file(at("c/sweep.h5"), kSweepSchema);
  EXPECT_THAT(file.dataset("sources/folder").read_texts(), ElementsAre(at("a"), at("b")));
  EXPECT_THAT(file.dataset("sources/runs").read<int64_t>(), ElementsAre(2, 4));
  EXPECT_THAT(file.dataset("sources/study").read_texts(),
              ElementsAre(read_file(at("a/study.toml")), read_file(at("b/study.toml"))));
  EXPECT_THAT(file.dataset("runs/source").read_texts(),
              ::testing::UnorderedElementsAre(at("a"), at("a"), at("b"), at("b")));
}

TEST_F(CollectCommand, NetworksOfMergedSweepsAreTold) {
  ASSERT_EQ(sweep_.run({"--set", "seed=1", "--no-probes"}, "a").exit_code, 0);
  ASSERT_EQ(sweep_
                .run({"--set", "seed=1", "--no-probes", "--set", "model='small_cnn'", "--set",
                      "batch_size=16", "--set", "updates=2"},
                     "b")
                .exit_code,
            0);
  const BinaryResult merged = collect({at("a"), at("b"), "--out", at("c")});
  ASSERT_EQ(merged.exit_code, 0) << merged.err;
  const std::string table = read_file(at("c/table.md"));
  EXPECT_THAT(table, HasSubstr("| batch size | optimiser | model |"));
  EXPECT_THAT(table, HasSubstr("| 16 | sgd | small_cnn |"));
  EXPECT_THAT(table, HasSubstr("| 32 | sgd | mlp |"));
}

TEST_F(CollectCommand, RefusesRunsOfOneNameThatDiffer) {
  for (const char* out : {"a", "b"})
    ASSERT_EQ(sweep_.run({"--set", "seed=1", "--no-probes"}, out).exit_code, 0);
  const std::string path = sweep_.runs("b/runs")[0] + "/run.h5";
  RunRecord record = read_run_file(path);
  for (auto& [key, value] : record.summary)
    if (key == "test_loss") value = std::nextafter(std::get<double>(value), 100.0);
  write_run_file(path, record);
  const BinaryResult refused = collect({at("a"), at("b"), "--out", at("c")});
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("run " + record.header.run_id + ": test_loss = "));
  EXPECT_FALSE(fs::exists(at("c")));
}

TEST_F(CollectCommand, SeveralNeedAFolderThatIsNoSweeps) {
  for (const char* out : {"a", "b"})
    ASSERT_EQ(sweep_.run({"--set", "seed=1", "--no-probes"}, out).exit_code, 0);
  const BinaryResult nowhere = collect({at("a"), at("b")});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("2 sweeps to merge: name a folder"));
  const BinaryResult own = collect({at("a"), at("b"), "--out", at("b")});
  EXPECT_EQ(own.exit_code, 2);
  EXPECT_THAT(own.err, HasSubstr("has runs of its own"));
  EXPECT_EQ(collect({at("a")}).exit_code, 0);
  EXPECT_EQ(collect({at("a"), "--out", at("c")}).exit_code, 0);
  EXPECT_THAT(differences(collected_numbers(at("c")), collected_numbers(at("a"))), IsEmpty());
}

}  // namespace
}  // namespace basin::testing
