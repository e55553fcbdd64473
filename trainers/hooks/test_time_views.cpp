#include "trainers/hooks/test_time_views.h"

#include "trainers/hooks/registry.h"
#include "trainers/tables.h"

namespace basin {

void bind_options(OptionTable& table, TestTimeViewsOptions& options) {
  table.add("test_time_augmentation", options.views, one_of({"none", "flip", "flip_shift"}),
            "at the end, also score the test images with logits averaged over these views");
}

HookCost TestTimeViews::cost(const Options& options) {
  return {.evaluations = 0, .test_passes = passes_of_views(options.views), .checkpoints = {}};
}

std::unique_ptr<UpdateHook> TestTimeViews::make(const Options& options, const HookSetup& setup) {
  const Views views = views_named(options.views, setup.data.test);
  return views == Views::one ? nullptr : std::make_unique<TestTimeViews>(views, setup.run);
}

void TestTimeViews::at_end(Summary& summary, bool diverged) {
  const SplitScore averaged = diverged ? SplitScore() : run_.score_test(views_);
  summary.emplace_back("tta_test_loss", averaged.loss);
  summary.emplace_back("tta_test_acc", averaged.accuracy);
}

HookEntry test_time_views_hook() {
  return hook_entry<TestTimeViews>({
      .name = "test_time_views",
      .help = "The test score over several views of each image.",
      .on = {"test_time_augmentation=flip"},
      .summary =
          {
              column("tta_test_loss", "nat", "test loss, logits averaged over views of each image",
                     "tta-loss"),
              column("tta_test_acc", "1", "test accuracy, logits averaged over views of each image",
                     "tta-accuracy"),
          },
  });
}

}  // namespace basin
