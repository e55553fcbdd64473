#include "sweep/branch_place.h"

#include "runs/checkpoints.h"
#include "runs/parts.h"
#include "study/checkpoint_names.h"

namespace basin {

double sum_over_updates(const BatchSchedule& batches, int64_t position, int64_t updates,
                        const std::function<double(int64_t)>& value) {
  double sum = 0;
  for (const auto& [size, of_phase] : batches.phases()) {
    const int64_t here = std::clamp<int64_t>(of_phase - position, 0, updates);
    position = std::max<int64_t>(0, position - of_phase);
    updates -= here;
    sum += static_cast<double>(here) * value(size);
  }
  return sum + static_cast<double>(updates) * value(batches.phases().back().batch_size);
}

BranchPoint expected_point(const ExpectedRun& parent, const std::string& label) {
  const TrainOptions& train = parent.options->train;
  int64_t own = parent.updates / 2;
  if (label == "start") own = 0;
  if (label == "end" || label == "average")
    own = std::max<int64_t>(0, parent.updates - (train.ends_by(Protocol::matched_loss) ? 1 : 0));
  if (is_cadence(label))
    own = std::clamp<int64_t>(std::atoll(label.c_str() + 1) - parent.from.update, 0, parent.updates);
  const BatchPlan plan = batch_plan_of(*parent.options);
  const BatchSchedule batches(train, plan, parent.train_examples);
  const Course course(train, batches, parent.from.update > 0 ? &parent.from : nullptr,
                      std::max<int64_t>(1, parent.updates));
  const double examples = sum_over_updates(batches, course.position(course.first()), own,
                                           [](int64_t size) { return static_cast<double>(size); });
  BranchPoint point = parent.from;
  point.update += own;
  point.examples += static_cast<int64_t>(examples);
  point.gradients += static_cast<int64_t>(examples) * plan.passes;
  return point;
}

}  // namespace basin
