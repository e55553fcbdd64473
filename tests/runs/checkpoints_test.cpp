// Which checkpoints of a run there are, and in which order.
#include "runs/checkpoints.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "io/checkpoint.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void write(const std::string& run_folder, const std::string& label, int64_t update) {
  Checkpoint checkpoint;
  checkpoint.label = label;
  checkpoint.update = update;
  checkpoint.parameters = {{"w", "fc", ParameterKind::weight, at::ones({3})}};
  write_checkpoint(checkpoint_path(run_folder, label), checkpoint);
}

TEST(Checkpoints, ComeInOrderOfUpdateWithoutTheRunsOwn) {
  const testing::TemporaryFolder run;
  std::filesystem::create_directories(run / "ckpt");
  EXPECT_THAT(checkpoint_labels(run.path()), IsEmpty());
  for (const auto& [label, update] : {std::pair{"end", 900},
                                      {"start", 0},
                                      {"u000100", 100},
                                      {"loss-1.5", 120},
                                      {"u000200", 200},
                                      {"latest", 900},
                                      {"previous", 800}})
    write(run.path(), label, update);
  EXPECT_THAT(checkpoint_labels(run.path()), ElementsAre("start", "u000100", "loss-1.5", "u000200", "end"));
  EXPECT_THAT(chosen_labels(run.path(), {"every", "end"}), ElementsAre("u000100", "u000200", "end"));
  EXPECT_THAT(chosen_labels(run.path(), {"loss"}), ElementsAre("loss-1.5"));
  EXPECT_THROW(checkpoint_labels(run / "ckpt"), IoError);
}

}  // namespace
}  // namespace basin
