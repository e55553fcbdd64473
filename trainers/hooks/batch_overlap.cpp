#include "trainers/hooks/batch_overlap.h"

#include "trainers/hooks/registry.h"

namespace basin {

std::unique_ptr<UpdateHook> BatchOverlap::make(const Options& /*options*/, const HookSetup& setup) {
  if (setup.plan.overlap == 0) return nullptr;
  return std::make_unique<BatchOverlap>(setup);
}

BatchOverlap::BatchOverlap(const HookSetup& setup)
    : plan_(setup.plan), optimizer_(setup.optimizer), gradient_(setup.gradient), stream_(setup.stream) {}

void BatchOverlap::before_gradient(OngoingUpdate& update) {
  with_last_.clear();
  const int64_t shared = overlap_of(plan_, update.batch_size);
  if (shared == 0 || update.number == 1) return;
  const int64_t start = update.start - shared;
  const std::vector<Batch> again{stream_.slice(start, shared, plan_.merge_duplicates)};
  gradient_.compute(again, {update.draw, start});
  with_last_ = gradient_.of_last_group();
  update.more_gradients += gradients_of(again, plan_);
}

void BatchOverlap::before_step(const OngoingUpdate& /*update*/) {
  optimizer_.set_overlap(with_last_, gradient_.of_last_group());
}

HookEntry batch_overlap_hook() {
  return hook_entry<BatchOverlap>({
      .name = "batch_overlap",
      .help = "Overlapping batches, for methods such as L-BFGS: a gradient again on the end of the previous "
              "batch.",
      .on = {"optimizer=lbfgs"},
  });
}

}  // namespace basin
