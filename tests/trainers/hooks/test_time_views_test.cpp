// Scores over several views of the test images against views made in plain loops.
#include "trainers/hooks/test_time_views.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "data/network_inputs.h"
#include "tests/trainers/test_run.h"

namespace basin::testing {
namespace {

RunSettings viewed_settings() {
  RunSettings s = small_settings();
  s.model = "airbench";
  s.model_settings = {"widths=[4, 4]", "groups=1"};
  s.data.train_examples = 60;
  s.data.test_examples = 40;
  s.train.updates = 2;
  s.train.batch_size = s.train.micro_batch = s.train.ghost_batch = 20;  // the test images take two passes
  return s;
}

// The score of those views, image by image and view by view, from pixels moved in plain loops.
SplitScore score_by_hand(TestRun& run, bool shifted) {
  const at::NoGradGuard no_grad;
  const Split& test = run.data.test;
  const int64_t n = test.size(), last = test.inputs.size(2) - 1;
  const at::Tensor images = network_inputs(run.data, test, at::arange(n, at::kLong), at::kDouble, at::kCPU);
  const auto mirrored = [&](int64_t i) { return i < 0 ? -i : i > last ? 2 * last - i : i; };
  const auto view = [&](int64_t shift, bool flip) {
    at::Tensor moved = at::empty_like(images);
    for (int64_t y = 0; y <= last; ++y)
      for (int64_t x = 0; x <= last; ++x) {
        const int64_t seen = flip ? last - x : x;
        moved.select(2, y).select(2, x).copy_(
            images.select(2, mirrored(y + shift)).select(2, mirrored(seen + shift)));
      }
    return moved;
  };
  run.model->eval();
  run.model->set_norm_mode(NormMode::running);
  const auto logits = [&](int64_t shift) {
    return run.model->forward(view(shift, false)) + run.model->forward(view(shift, true));
  };
  at::Tensor mean = logits(0) / 2;
  if (shifted) mean = mean / 2 + logits(-1) / 8 + logits(1) / 8;
  const at::Tensor chosen = at::log_softmax(mean, 1).gather(1, test.labels.unsqueeze(1));
  return {-chosen.mean().item<double>(),
          mean.argmax(1).eq(test.labels).to(at::kDouble).mean().item<double>()};
}

TEST(TestTimeAugmentation, ScoresTheMeanOfTheViews) {
  for (const std::string views : {"flip", "flip_shift"}) {
    RunSettings s = viewed_settings();
    s.train.updates = 6;
    s.train.hook<TestTimeViewsOptions>().views = views;
    TestRun run(s);
    const TrainResult result = run.run();
    const SplitScore expected = score_by_hand(run, views == "flip_shift");
    EXPECT_EQ(number(result, "tta_test_acc"), expected.accuracy) << views;
    EXPECT_NEAR(number(result, "tta_test_loss"), expected.loss, 1e-11) << views;  // float64 in another order
    s.train.hook<TestTimeViewsOptions>().views = "none";
    TestRun plain(s);
    const TrainResult without = plain.run();
    EXPECT_EQ(number(without, "test_loss"), number(result, "test_loss")) << "it changes nothing else";
    EXPECT_EQ(without.summary.size() + 2, result.summary.size());
  }
}

TEST(TestTimeAugmentation, OfADivergedRunIsNaN) {
  RunSettings s = viewed_settings();
  s.train.hook<TestTimeViewsOptions>().views = "flip";
  s.train.divergence_loss = 1e-6;
  TestRun run(s);
  const TrainResult result = run.run();
  ASSERT_EQ(result.status, RunState::diverged);
  EXPECT_TRUE(std::isnan(number(result, "tta_test_acc")) && std::isnan(number(result, "tta_test_loss")));
}

TEST(TestTimeAugmentation, RefusesImagesThatCantBeShifted) {
  RunSettings s = small_settings();
  s.data.set = "coin_flips";
  s.model = "noisy_quadratic";
  s.model_settings = {};
  s.train.loss = "mse";
  s.train.hook<TestTimeViewsOptions>().views = "flip_shift";
  try {
    TestRun run(s);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "test_time_augmentation = \"flip_shift\" can't shift images of 1 x 1");
  }
}

}  // namespace
}  // namespace basin::testing
