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

int64_t ceil_divide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

void check_examples(double updates, const BatchPlan& plan, const std::string& budget) {
  const double examples = updates * static_cast<double>(plan.batch_size);
  if (examples <= kMostExamples) return;
  throw ConfigError(
      fmt::format("{} with batch_size = {} asks for {:.3g} examples; at most 2^53 can be counted", budget,
                  plan.batch_size, examples));
}

// Among the positions [start, start + count). Within one epoch all differ, and a whole epoch holds every
// example: only a batch that holds parts of two epochs and no whole one must be looked at.
int64_t distinct_examples(ExampleStream& stream, int64_t start, int64_t count, int64_t n) {
  if ((start / n + 1) * n >= start + count) return count;
  if (ceil_divide(start, n) * n + n <= start + count) return n;
  return static_cast<int64_t>(stream.slice(start, count, true).examples.size());
}

// Exact, because the schedule and the cap hang on it: batches that straddle epochs hold fewer distinct
// examples.
int64_t updates_for_gradients(const TrainOptions& options, int64_t n) {
  ExampleStream stream(static_cast<uint64_t>(options.seed), n);
  int64_t gradients = 0, updates = 0;
  while (gradients < options.max_gradients) {
    gradients += distinct_examples(stream, updates * options.batch_size, options.batch_size, n);
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
    throw ConfigError(
        fmt::format("micro_batch = {} must be a multiple of ghost_batch ({}) with batch statistics",
                    options.micro_batch, ghost));
  }
}

bool merges_duplicates(const TrainOptions& options, const DataOptions& data, bool has_dropout,
                       bool has_batch_statistics) {
  return options.duplicates == "weighted" && data.augmentation == "none" && !has_dropout &&
         !has_batch_statistics;
}

BatchPlan plan_batches(const TrainOptions& options, const DataOptions& data, const Model& model) {
  check_batches(options, model.has_batch_statistics());
  BatchPlan plan;
  plan.batch_size = options.batch_size;
  plan.micro_batch = std::min(options.micro_batch, options.batch_size);
  plan.ghost_batch = ghost_batch_of(options);
  plan.merge_duplicates = merges_duplicates(options, data, model.has_dropout(), model.has_batch_statistics());
  return plan;
}

int64_t planned_updates(const TrainOptions& options, const BatchPlan& plan, int64_t n) {
  const double batch = static_cast<double>(plan.batch_size);
  if (options.protocol == "A-updates") {
    check_examples(static_cast<double>(options.updates), plan, fmt::format("updates = {}", options.updates));
    return options.updates;
  }
  if (options.protocol == "A-epochs") {
    const double updates = options.epochs * static_cast<double>(n) / batch;
    check_examples(std::max(1.0, updates), plan, fmt::format("epochs = {:g}", options.epochs));
    // 0.7 epochs of 1,000 examples are 700, not the 700.0000000000001 that would buy one update more.
    return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(updates * (1 - 1e-12))));
  }
  // Merged, a batch costs the data once: a batch beyond it makes more examples of as many gradients.
  const double cost = plan.merge_duplicates ? std::min(batch, static_cast<double>(n)) : batch;
  check_examples(std::max(1.0, static_cast<double>(options.max_gradients) / cost), plan,
                 fmt::format("max_gradients = {}", options.max_gradients));
  if (!plan.merge_duplicates) return ceil_divide(options.max_gradients, plan.batch_size);
  return updates_for_gradients(options, n);
}

}  // namespace basin
