// Branches through the files: parents that are missing, damaged, foreign or unfit, and what is in the record.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "io/checkpoint.h"
#include "io/run_file.h"
#include "runs/folder.h"
#include "runs/subject.h"
#include "runs/train.h"
#include "study/study.h"
#include "tests/runs/tiny_run.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class BranchFiles : public ::testing::Test {
 protected:
  BranchFiles() {
    EXPECT_EQ(train_run(parent, folder_of(parent)), RunState::finished);
    child = parent;
    child.train.branch.from = parent.run_id();
    child.train.branch.at = "u000008";
  }
  std::string folder_of(const RunOptions& options) const { return run_folder(out.path(), options); }
  std::string checkpoint() const { return folder_of(parent) + "/ckpt/u000008.h5"; }
  std::string error() {
    try {
      train_run(child, folder_of(child));
    } catch (const Error& error) {
      code = error.exit_code();
      return error.what();
    }
    return "no error";
  }
  std::string provenance(const std::string& key) const {
    for (const auto& [name, value] : read_run_file(folder_of(child) + "/run.h5").header.provenance)
      if (name == key) return value;
    return "none";
  }

  testing::TemporaryFolder out;
  RunOptions parent = testing::tiny_run(), child;
  int code = 0;
};

TEST_F(BranchFiles, EndAtTheirParentsWeightsWhereNothingIsChanged) {
  EXPECT_EQ(train_run(child, folder_of(child)), RunState::finished);
  const Checkpoint a = read_checkpoint(folder_of(child) + "/ckpt/end.h5"),
                   b = read_checkpoint(folder_of(parent) + "/ckpt/end.h5");
  for (size_t i = 0; i < a.parameters.size(); ++i)
    EXPECT_TRUE(a.parameters[i].tensor.equal(b.parameters[i].tensor)) << a.parameters[i].name;
  const RunRecord record = read_run_file(folder_of(child) + "/run.h5");
  EXPECT_EQ(record.tables.at("train").column("update").front(), 9);
  EXPECT_EQ(updates_in(record), 12);
  EXPECT_EQ(provenance("branch_parent"), parent.run_id() + "/u000008");
  EXPECT_EQ(provenance("branch_parent_sha256"), sha256_of_file(checkpoint()));
}

TEST_F(BranchFiles, OfAFileElsewhereAreTheSameRunUnderAnotherName) {
  const std::string copy = out / "elsewhere.h5";
  fs::copy_file(checkpoint(), copy);
  RunOptions options = parent;
  options.train.branch.from = "sha256:" + sha256_of_file(copy);
  options.train.branch.at = "u000008";
  options.train.branch.path = copy;
  EXPECT_NE(options.run_id(), child.run_id());
  child = options;
  EXPECT_EQ(error(), "no error");
  const Checkpoint a = read_checkpoint(folder_of(child) + "/ckpt/end.h5"),
                   b = read_checkpoint(folder_of(parent) + "/ckpt/end.h5");
  for (size_t i = 0; i < a.parameters.size(); ++i)
    EXPECT_TRUE(a.parameters[i].tensor.equal(b.parameters[i].tensor)) << a.parameters[i].name;
}

TEST_F(BranchFiles, ThatAreMissingDamagedOrForeignAreOneLine) {
  child.train.branch.from = "0123456789ab";
  EXPECT_THAT(error(), HasSubstr("runs/0123456789ab: missing: branch.from names this run"));
  EXPECT_EQ(code, 4);
  child.train.branch.from = parent.run_id();
  child.train.branch.at = "u000005";
  EXPECT_THAT(error(), AllOf(HasSubstr("u000005.h5: missing: the parent kept no checkpoint"),
                             HasSubstr("start, u000004, u000008, ")));
  child.train.branch.at = "u000008";
  const std::string bytes = read_file(checkpoint());
  write_file_atomically(checkpoint(), bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(error(), HasSubstr("u000008.h5"));
  EXPECT_EQ(code, 4);
  write_file_atomically(checkpoint(), "no checkpoint at all");
  EXPECT_THAT(error(), HasSubstr("u000008.h5"));
  fs::copy_file(folder_of(parent) + "/ckpt/u000004.h5", checkpoint(), fs::copy_options::overwrite_existing);
  EXPECT_THAT(error(), HasSubstr("is the checkpoint \"u000004\", not branch.at = \"u000008\""));
  // Nothing is lost: with the parent whole again the same folder has the branch.
  write_file_atomically(checkpoint(), bytes);
  EXPECT_EQ(status_of(folder_of(child), child.run_id()).status, RunState::failed);
  EXPECT_EQ(error(), "no error");
  EXPECT_EQ(status_of(folder_of(child), child.run_id()).status, RunState::finished);
}

TEST_F(BranchFiles, OfAnotherNetworkTypeDataOrFileAreOneLine) {
  RunOptions other = child;
  child.table().set_from_text("mlp.hidden=[7]", "test");
  EXPECT_THAT(error(), AllOf(HasSubstr("of another network: "), HasSubstr("u000008.h5")));
  child = other;
  child.model = "small_cnn";
  EXPECT_THAT(error(), HasSubstr("of another network: mlp there, small_cnn here"));
  child = other;
  child.train.dtype = "float64";
  EXPECT_THAT(error(), HasSubstr("of another type: float32 there, float64 here"));
  child = other;
  child.data.train_examples = 90;
  EXPECT_THAT(error(), HasSubstr("made from other data"));
  child = other;
  child.optimizer = "lamb";
  EXPECT_THAT(error(), HasSubstr("\"reset\" begins without its state"));
  EXPECT_EQ(code, 2);
  child = other;
  child.train.branch.path = checkpoint();
  child.train.branch.from = "sha256:" + std::string(64, '0');
  EXPECT_THAT(error(), HasSubstr("is not the file that branch.from names"));
  child = other;
  child.train.branch.at = "end";
  EXPECT_THAT(error(), HasSubstr("nothing is left of the budget"));
}

TEST_F(BranchFiles, OfAMeanOfChainsHaveNoOptimizerStateToKeep) {
  RunOptions chains = parent;
  chains.table().set_from_text("parallel.shards=3", "test");
  ASSERT_EQ(train_run(chains, folder_of(chains)), RunState::finished);
  child.train.branch.from = chains.run_id();
  EXPECT_THAT(error(), AllOf(HasSubstr("branch.optimizer = \"kept\": "),
                             HasSubstr("u000008.h5 has a mean of chains' weights (parallel.shards)"),
                             HasSubstr("\"reset\" begins without one")));
  EXPECT_EQ(code, 2);
  child.train.branch.optimizer = "reset";
  EXPECT_EQ(error(), "no error");
}

TEST_F(BranchFiles, OfWorkersHaveTheirBatchSize) {
  RunOptions workers = parent;
  workers.table().set_from_text("parallel.mode=ssp", "test");
  ASSERT_EQ(train_run(workers, folder_of(workers)), RunState::finished);
  child = workers;
  child.train.branch.from = workers.run_id();
  child.train.branch.at = "u000008";
  EXPECT_EQ(error(), "no error");
  child.train.batch_size *= 2;
  EXPECT_THAT(error(), HasSubstr("u000008.h5: workers (parallel.mode) need the same in both"));
  EXPECT_EQ(code, 2);
  child.table().set_from_text("parallel.mode=one", "test");
  EXPECT_EQ(error(), "no error");
}

TEST_F(BranchFiles, ChainsOfBranchesRememberARestartedStream) {
  child.train.branch.stream = "restarted";
  child.train.branch.updates = 8;
  EXPECT_EQ(train_run(child, folder_of(child)), RunState::finished);
  RunOptions grandchild = child;
  grandchild.train.branch = {};
  grandchild.train.branch.from = child.run_id();
  grandchild.train.branch.at = "u000012";
  grandchild.train.branch.updates = 4;
  EXPECT_EQ(train_run(grandchild, folder_of(grandchild)), RunState::finished);
  const Checkpoint a = read_checkpoint(folder_of(grandchild) + "/ckpt/end.h5"),
                   b = read_checkpoint(folder_of(child) + "/ckpt/end.h5");
  EXPECT_EQ(a.update, 16);
  EXPECT_EQ(b.update, 16);
  for (size_t i = 0; i < a.parameters.size(); ++i)
    EXPECT_TRUE(a.parameters[i].tensor.equal(b.parameters[i].tensor)) << a.parameters[i].name;
}

// The parent has seen four batches of 20. The branch's own schedule has twelve batches of 10 and then six of 20, of which those 80
// examples are eight: its updates 5 to 8 are of 10 examples, and its twelfth is the sixteenth of the schedule, of 20.
TEST_F(BranchFiles, HaveTheBatchSizeOfTheirOwnSchedule) {
  child = parent;
  child.train.protocol = "A-epochs";
  child.train.epochs = 2.4;
  child.train.batch_size = 10;
  child.train.batch_milestones = {0.5};
  child.train.batch_factor = 2;
  child.train.branch.from = parent.run_id();
  child.train.branch.at = "u000004";
  ASSERT_EQ(train_run(child, folder_of(child)), RunState::finished);
  for (const auto& [label, size] : {std::pair{"u000008", 10}, {"u000012", 20}}) {
    const Checkpoint kept = read_checkpoint(folder_of(child) + "/ckpt/" + label + ".h5");
    const Subject subject(folder_of(child), kept, {}, at::kCPU);
    EXPECT_EQ(subject.prepare(kept).batch_size, size) << label;
  }
}

}  // namespace
}  // namespace basin
