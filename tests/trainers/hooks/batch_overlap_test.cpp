// Training by L-BFGS: the gradients that its overlaps ask for, their cost, what is refused.
#include <gtest/gtest.h>

#include "core/error.h"
#include "optim/lbfgs.h"
#include "tests/trainers/test_run.h"
#include "trainers/hooks/perturbed_gradient.h"

namespace basin {
namespace {

using namespace testing;

RunSettings lbfgs_settings() {
  RunSettings s = small_settings();
  s.optimizer = "lbfgs";
  s.optimizer_settings = {"overlap=0.3", "history=4"};
  s.train.protocol = "A-updates";
  s.train.updates = 8;
  s.train.batch_size = 60;
  s.train.learning_rate = 0.5;
  s.train.duplicates = "repeated";
  return s;
}

// By hand: update t has positions [60 t, 60 t + 60), of which the last 18 come again before update t + 1.
TEST(Overlap, GivesLbfgsTheGradientsOfTheSameExamplesBeforeAndAfterAStep) {
  TestRun trained(lbfgs_settings()), by_hand(lbfgs_settings());
  const TrainResult result = trained.run();
  for (int64_t t = 0; t < 8; ++t) {
    std::vector<at::Tensor> again;
    if (t > 0) again = plain_gradient(by_hand, 60 * t - 18, 18);
    by_hand.optimizer->set_overlap(again, plain_gradient(by_hand, 60 * t + 42, 18));
    const std::vector<at::Tensor> whole = plain_gradient(by_hand, 60 * t, 60);
    for (size_t i = 0; i < whole.size(); ++i)
      at::Tensor(by_hand.model->parameter_table()[i].tensor).mutable_grad() = whole[i];
    by_hand.optimizer->set_learning_rate(0.5);
    by_hand.optimizer->step();
  }
  // Sums of 60 gradients in another order, through eight steps of two loops over differences: far above 1e-16, far below what
  // a wrong example would do.
  EXPECT_LT(relative_difference(trained.weights(), by_hand.weights()), 1e-9);
  EXPECT_EQ(number(result, "gradients"), 8 * 60 + 7 * 18);
  EXPECT_EQ(number(result, "examples"), 8 * 60);
}

TEST(Overlap, MicroBatchesAndAResumeChangeNothing) {
  RunSettings s = lbfgs_settings();
  TestRun undisturbed(s), first(s), second(s);
  undisturbed.run();
  first.run_until(3);
  second.trainer->restore(first.listener.checkpoints.at("latest"));
  second.run();
  EXPECT_TRUE(second.weights().equal(undisturbed.weights()));
  s.train.micro_batch = 7;
  TestRun cut(s);
  cut.run();
  EXPECT_LT(relative_difference(cut.weights(), undisturbed.weights()), 1e-9);
}

// The schedule of protocol B is laid over what its cap buys, the overlaps' second gradients included.
TEST(Overlap, CountsInTheBudgetOfProtocolB) {
  RunSettings s = lbfgs_settings();
  s.train.protocol = "B";
  s.train.target_loss = 1e-9;
  s.train.check_every = 1'000'000;
  for (const char* duplicates : {"weighted", "repeated"}) {
    s.train.duplicates = duplicates;
    s.train.max_gradients = 500;
    TestRun run(s);
    const double gradients = number(run.run(), "gradients");
    EXPECT_GE(gradients, 500) << duplicates;
    EXPECT_LT(gradients, 500 + 78) << duplicates;
  }
}

std::string overlap_refusal(const RunSettings& s) {
  try {
    TestRun run(s);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Overlap, RefusesWhatItsPairsCannotBear) {
  RunSettings s = lbfgs_settings();
  s.train.hook<PerturbationOptions>().kind = "sam";
  EXPECT_NE(overlap_refusal(s).find("overlap"), std::string::npos);
  s = lbfgs_settings();
  s.train.batch_milestones = {0.5};
  EXPECT_NE(overlap_refusal(s).find("batch_milestones"), std::string::npos);
  s = lbfgs_settings();
  s.model = "keskar_c1";
  s.model_settings = {"width=2", "hidden=[8, 6]", "norm=none", "dropout=0.5"};
  EXPECT_NE(overlap_refusal(s).find("dropout"), std::string::npos);
  s.model_settings = {"width=2", "hidden=[8, 6]", "norm=batch"};
  s.train.ghost_batch = 20;
  s.train.micro_batch = 20;
  EXPECT_NE(overlap_refusal(s).find("whole ghost batches (20)"), std::string::npos);
}

}  // namespace
}  // namespace basin
