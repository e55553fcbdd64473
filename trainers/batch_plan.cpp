#include "trainers/batch_plan.h"

#include "core/error.h"

namespace basin {
namespace {

constexpr int64_t kDefaultGhostBatch = 256;

// What hooks say about how batches are cut.
BatchPlan plan_of_hooks(const TrainOptions& options) {
  BatchPlan plan;
  for (const auto& hook : options.hooks.all()) hook->plan(plan);
  return plan;
}

}  // namespace

int64_t ghost_batch_of(const TrainOptions& options) {
  const int64_t wanted = options.ghost_batch > 0 ? options.ghost_batch : kDefaultGhostBatch;
  return std::min(wanted, options.batch_size);
}

void check_cut(const std::string& key, int64_t part, const TrainOptions& options) {
  const int64_t ghost = ghost_batch_of(options);
  if (part >= largest_batch(options) || part % ghost == 0) return;
  throw ConfigError(
      fmt::format("{} = {} must be a multiple of ghost_batch ({}) with batch statistics", key, part, ghost));
}

int64_t largest_batch(const TrainOptions& options) {
  const double size = static_cast<double>(options.batch_size) *
                      std::pow(static_cast<double>(options.batch_factor),
                               static_cast<double>(options.batch_milestones.size()));
  if (options.batch_milestones.empty()) return options.batch_size;
  if (size <= kMostExamples) return static_cast<int64_t>(size);
  throw ConfigError(
      fmt::format("batch_factor = {} at {} batch_milestones makes a batch of {:.3g} examples; at most 2^53 "
                  "can be counted",
                  options.batch_factor, options.batch_milestones.size(), size));
}

int64_t most_ranks(const BatchPlan& plan, bool has_batch_statistics) {
  const int64_t whole = plan.group > 0 ? plan.group : plan.batch_size;
  const int64_t unit = has_batch_statistics ? plan.ghost_batch : 1;
  return (whole + unit - 1) / unit;
}

int64_t overlap_of(const BatchPlan& plan, int64_t size) {
  if (plan.overlap == 0) return 0;
  return std::clamp<int64_t>(std::llround(plan.overlap * static_cast<double>(size)), 1, size);
}

void check_training(const TrainOptions& options, bool has_batch_statistics, double overlap,
                    bool gradients_elsewhere) {
  if (options.label_smoothing > 0 && options.loss == "mse") {
    throw ConfigError(fmt::format("label_smoothing = {:g} needs a cross entropy as loss, not \"{}\"",
                                  options.label_smoothing, options.loss));
  }
  if (options.autocast != "none" && options.dtype != "float32") {
    throw ConfigError(fmt::format("autocast = \"{}\" needs dtype = \"float32\", not \"{}\"", options.autocast,
                                  options.dtype));
  }
  if (!options.batch_milestones.empty() && options.ends_by(Protocol::matched_loss)) {
    throw ConfigError("batch_milestones are shares of a fixed budget, which protocol = \"B\" doesn't have");
  }
  if (options.regime_batch > 0 && !options.ends_by(Protocol::epochs)) {
    throw ConfigError(
        fmt::format("regime_batch = {} multiplies epochs: it needs protocol = \"A-epochs\", not \"{}\"",
                    options.regime_batch, options.protocol));
  }
  largest_batch(options);
  const BatchPlan wanted = plan_of_hooks(options);
  const HookCheck run{options, wanted, overlap, has_batch_statistics, gradients_elsewhere};
  for (const auto& hook : options.hooks.all()) hook->check(run);
  if (overlap > 0 && !options.batch_milestones.empty())
    throw ConfigError("batch_milestones and an optimiser with overlap exclude each other");
  if (!has_batch_statistics) return;
  const int64_t shared = overlap_of({.overlap = overlap}, options.batch_size),
                ghost = ghost_batch_of(options);
  if (overlap > 0 && (shared % ghost != 0 || options.batch_size % ghost != 0)) {
    throw ConfigError(
        fmt::format("an overlap of {} examples in a batch of {} must be whole ghost batches ({})", shared,
                    options.batch_size, ghost));
  }
  check_cut("micro_batch", options.micro_batch, options);
}

BatchPlan plan_batches(const TrainOptions& options, const DataOptions& data, bool has_dropout,
                       bool has_batch_statistics, double overlap) {
  check_training(options, has_batch_statistics, overlap);
  if (overlap > 0 && has_dropout)
    throw ConfigError("dropout and an optimiser with overlap exclude each other");
  BatchPlan plan = plan_of_hooks(options);
  plan.overlap = overlap;
  plan.batch_size = options.batch_size;
  plan.micro_batch = std::min(options.micro_batch, largest_batch(options));
  plan.ghost_batch = ghost_batch_of(options);
  plan.merge_duplicates = options.duplicates == "weighted" && data.augmentation == "none" && !has_dropout &&
                          !has_batch_statistics;
  return plan;
}

std::vector<Batch> batch_groups(ExampleStream& stream, int64_t start, int64_t size, const BatchPlan& plan) {
  const int64_t group = plan.group > 0 ? plan.group : size, shared = overlap_of(plan, size);
  std::vector<Batch> groups;
  if (shared > 0 && shared < size) {
    return {stream.slice(start, size - shared, plan.merge_duplicates),
            stream.slice(start + size - shared, shared, plan.merge_duplicates)};
  }
  for (int64_t first = 0; first < size; first += group)
    groups.push_back(stream.slice(start + first, std::min(group, size - first), plan.merge_duplicates));
  return groups;
}

int64_t gradients_of(const std::vector<Batch>& groups, const BatchPlan& plan) {
  int64_t images = 0;
  for (const Batch& group : groups) images += static_cast<int64_t>(group.examples.size());
  return images * plan.passes;
}

}  // namespace basin
