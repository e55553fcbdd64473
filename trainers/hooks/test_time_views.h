// defines: TestTimeViews, the test score over several views of each image.
#pragma once

#include <memory>
#include <string>

#include "trainers/update_hook.h"

namespace basin {

struct TestTimeViewsOptions {
  std::string views = "none";  // none | flip | flip_shift: tta_test_acc next to test_acc
};
void bind_options(OptionTable& table, TestTimeViewsOptions& options);

/// tta_test_loss and tta_test_acc in the summary: averaged logits over the views of trainers/evaluation.h, at the weights that the
/// run ended with; NaN where it diverged.
class TestTimeViews final : public UpdateHook {
 public:
  using Options = TestTimeViewsOptions;
  static HookCost cost(const Options& options);
  /// ConfigError where the images are too small to be shifted.
  static std::unique_ptr<UpdateHook> make(const Options& options, const HookSetup& setup);
  TestTimeViews(Views views, HookedRun& run) : views_(views), run_(run) {}

  void at_end(Summary& summary, bool diverged) override;

 private:
  Views views_;
  HookedRun& run_;
};

}  // namespace basin
