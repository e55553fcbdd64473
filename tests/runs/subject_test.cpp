// What probes get of a checkpoint.
#include "runs/subject.h"

#include <gtest/gtest.h>

#include "io/checkpoint.h"
#include "optim/optimizer.h"
#include "runs/folder.h"
#include "runs/train.h"
#include "tests/runs/tiny_run.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

// The optimiser's state in such a checkpoint is that of the chain which made the last update.
TEST(Subject, AMeanOfChainsHasNoOptimizer) {
  for (const int64_t shards : {0, 3}) {
    const testing::TemporaryFolder out;
    RunOptions options = testing::tiny_run();
    options.optimizer = "adam";
    options.table().set_from_text("parallel.shards=" + std::to_string(shards), "test");
    const std::string folder = run_folder(out.path(), options);
    ASSERT_EQ(train_run(options, folder), RunState::finished);
    const Checkpoint end = read_checkpoint(folder + "/ckpt/end.h5");
    ASSERT_FALSE(end.optimizer.empty());
    EXPECT_EQ(Subject(folder, end, {}, at::kCPU).prepare(end).optimizer == nullptr, shards > 0) << shards;
  }
}

}  // namespace
}  // namespace basin
