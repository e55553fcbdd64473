// The words that a sweep says about a worker.
#include <gtest/gtest.h>

#include "apps/output/sweep_display.h"

namespace basin {
namespace {

TEST(WorkerLine, SaysHowFarARunIs) {
  const WorkerLine training{"lamb B=2048 protocol B seed 1", Activity::training, 34, 0.43, 8120, 1.62};
  EXPECT_EQ(to_text(training),
            "training lamb B=2048 protocol B seed 1  update 34  43 %  8120 images/s  loss 1.62");
  const WorkerLine starting{"sgd B=32 protocol A-epochs seed 1", Activity::training, 0, 0, 0, NAN};
  EXPECT_EQ(to_text(starting), "training sgd B=32 protocol A-epochs seed 1  update 0  0 %");
  const WorkerLine probing{"sgd B=32 protocol A-epochs seed 1", Activity::probing, 90, 1, 8000, 1.5};
  EXPECT_EQ(to_text(probing), "probing sgd B=32 protocol A-epochs seed 1");
  WorkerLine measuring = probing;
  measuring.probing = "3/12: end top_eigenvalues, about 40 s left";
  EXPECT_EQ(to_text(measuring),
            "probing sgd B=32 protocol A-epochs seed 1  3/12: end top_eigenvalues, about 40 s left");
}

}  // namespace
}  // namespace basin
