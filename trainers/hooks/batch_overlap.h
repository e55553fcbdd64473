// defines: BatchOverlap, for optimisers that want a gradient again at the next weights.
#pragma once

#include <memory>
#include <vector>

#include "trainers/update_hook.h"

namespace basin {

/// Before update t > 1, at its weights, the mean gradient of the examples that batch t-1 ended with (overlap_of()), and the part of
/// batch t's gradient that is of its own last ones: what Optimizer::set_overlap() takes. The stream's order stays that of every
/// other method. Cost: round(overlap B) image gradients more an update, counted. On where Optimizer::overlap() > 0, without
/// options of its own.
class BatchOverlap final : public UpdateHook {
 public:
  struct Options {};
  static void bind(OptionTable&, Options&) {}
  static std::unique_ptr<UpdateHook> make(const Options& options, const HookSetup& setup);
  explicit BatchOverlap(const HookSetup& setup);

  void before_gradient(OngoingUpdate& update) override;
  void before_step(const OngoingUpdate& update) override;

 private:
  const BatchPlan& plan_;
  Optimizer& optimizer_;
  BatchGradient& gradient_;
  ExampleStream& stream_;
  std::vector<at::Tensor> with_last_;
};

}  // namespace basin
