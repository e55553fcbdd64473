#include "trainers/batch_plan.h"

#include "core/error.h"
#include "data/example_stream.h"

namespace basin {
namespace {

constexpr int64_t kDefaultGhostBatch = 256;

int64_t ghost_batch_of(const TrainOptions& options) {
  const int64_t wanted = options.ghost_batch > 0 ? options.ghost_batch : kDefaultGhostBatch;
  return std::min(wanted, options.batch_size);
}

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Exact, because the schedule and the cap hang on it: batches that straddle epochs hold fewer distinct examples.
int64_t updates_for_gradients(const TrainOptions& options, int64_t n) {
  ExampleStream stream(static_cast<uint64_t>(options.seed), n);
  int64_t gradients = 0, updates = 0;
  while (gradients < options.max_gradients) {
    const Batch batch = stream.slice(updates * options.batch_size, options.batch_size, true);
    gradients += static_cast<int64_t>(batch.examples.size());
    ++updates;
  }
  return updates;
}

}  // namespace

void check_batches(const TrainOptions& options, bool has_batch_statistics) {
  if (!has_batch_statistics) return;
  const int64_t ghost = ghost_batch_of(options);
  const int64_t micro = std::min(options.micro_batch, options.batch_size);
  if (micro < options.batch_size && micro % ghost != 0) {
    throw ConfigError(fmt::format("micro_batch = {} must be a multiple of ghost_batch ({}) with batch statistics",
                                  options.micro_batch, ghost));
  }
}

BatchPlan plan_batches(const TrainOptions& options, const DataOptions& data, const Model& model) {
  check_batches(options, model.has_batch_statistics());
  BatchPlan plan;
  plan.batch_size = options.batch_size;
  plan.micro_batch = std::min(options.micro_batch, options.batch_size);
  plan.ghost_batch = ghost_batch_of(options);
  plan.merge_duplicates = options.duplicates == "weighted" && data.augmentation == "none" && !model.has_dropout() &&
                          !model.has_batch_statistics();
  return plan;
}

int64_t planned_updates(const TrainOptions& options, const BatchPlan& plan, int64_t n) {
  if (options.protocol == "A-updates") return options.updates;
  if (options.protocol == "A-epochs") {
    const double updates = options.epochs * static_cast<double>(n) / static_cast<double>(plan.batch_size);
    // 0.7 epochs of 1,000 examples are 700, not the 700.0000000000001 that would buy one update more.
    return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(updates * (1 - 1e-12))));
  }
  if (!plan.merge_duplicates) return ceil_divide(options.max_gradients, plan.batch_size);
  return updates_for_gradients(options, n);
}

}  // namespace basin
