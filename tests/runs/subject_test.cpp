// What probes get of a checkpoint.
#include "runs/subject.h"

#include <gtest/gtest.h>

#include "io/checkpoint.h"
#include "optim/optimizer.h"
#include "runs/folder.h"
#include "runs/train.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

RunOptions chains_of(int64_t shards) {
  RunOptions options;
  options.model = "mlp";
  options.optimizer = "adam";
  options.data.set = "synthetic";
  options.data.train_examples = 60;
  options.data.test_examples = 20;
  options.train.protocol = "A-updates";
  options.train.updates = 6;
  options.train.batch_size = 10;
  options.runtime.progress = false;
  options.runtime.threads = 1;
  const std::string of_chains = "parallel.shards=" + std::to_string(shards);
  for (const std::string& setting : {std::string("mlp.hidden=[4]"), of_chains})
    options.table().set_from_text(setting, "test");
  return options;
}

// The optimiser's state in such a checkpoint is that of the chain which made the last update.
TEST(Subject, AMeanOfChainsHasNoOptimizer) {
  for (const int64_t shards : {0, 3}) {
    const testing::TemporaryFolder out;
    const RunOptions options = chains_of(shards);
    const std::string folder = run_folder(out.path(), options);
    ASSERT_EQ(train_run(options, folder), RunState::finished);
    const Checkpoint end = read_checkpoint(folder + "/ckpt/end.h5");
    ASSERT_FALSE(end.optimizer.empty());
    EXPECT_EQ(Subject(folder, end, {}, at::kCPU).prepare(end).optimizer == nullptr, shards > 0) << shards;
  }
}

}  // namespace
}  // namespace basin
