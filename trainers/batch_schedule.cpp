#include "trainers/batch_schedule.h"

#include "core/error.h"

namespace basin {
namespace {

using Phase = BatchSchedule::Phase;

int64_t ceil_divide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// 0.7 epochs of 1,000 examples are 700, not the 700.0000000000001 that would buy one update more.
int64_t whole_examples(double examples) { return static_cast<int64_t>(std::ceil(examples * (1 - 1e-12))); }

void check_examples(double examples, const TrainOptions& options, const std::string& budget) {
  if (examples <= kMostExamples) return;
  throw ConfigError(
      fmt::format("{} with batch_size = {} asks for {:.3g} examples; at most 2^53 can be counted", budget,
                  options.batch_size, examples));
}

// m_1, ..., m_K, 1: where the phases end.
std::vector<double> ends_of(const TrainOptions& options) {
  std::vector<double> ends = options.batch_milestones;
  std::sort(ends.begin(), ends.end());
  ends.push_back(1);
  return ends;
}

// Every phase until its share of the budget is seen; at most `most` updates in all.
std::vector<Phase> share_out(const TrainOptions& options, double budget, int64_t most) {
  std::vector<Phase> phases;
  int64_t size = options.batch_size, seen = 0, left = most;
  for (const double end : ends_of(options)) {
    const int64_t wanted = std::max<int64_t>(0, whole_examples(end * budget) - seen);
    const int64_t updates = std::min(left, ceil_divide(wanted, size));
    phases.push_back({size, updates});
    seen += updates * size;
    left -= updates;
    if (phases.size() <= options.batch_milestones.size()) size *= options.batch_factor;
  }
  return phases;
}

std::vector<Phase> phases_of_epochs(const TrainOptions& options, int64_t n) {
  const double budget = std::max(1.0, options.epochs * epoch_stretch(options) * static_cast<double>(n));
  check_examples(budget + static_cast<double>(largest_batch(options)), options,
                 fmt::format("epochs = {:g}", options.epochs));
  return share_out(options, budget, std::numeric_limits<int64_t>::max());
}

std::vector<Phase> phases_of_updates(const TrainOptions& options) {
  double updates_an_example = 0, start = 0, size = static_cast<double>(options.batch_size);
  for (const double end : ends_of(options)) {
    updates_an_example += (end - start) / size;
    size *= static_cast<double>(options.batch_factor);
    start = end;
  }
  const double budget = static_cast<double>(options.updates) / updates_an_example;
  check_examples(budget + static_cast<double>(largest_batch(options)), options,
                 fmt::format("updates = {}", options.updates));
  std::vector<Phase> phases = share_out(options, budget, options.updates);
  int64_t made = 0;
  for (const Phase& phase : phases) made += phase.updates;
  phases.back().updates += options.updates - made;  // what rounding left over
  return phases;
}

// Among the positions [start, start + count). Within one epoch all differ, and a whole epoch holds every
// example: only a stretch that holds parts of two epochs and no whole one must be looked at.
int64_t distinct_examples(ExampleStream& stream, int64_t start, int64_t count, int64_t n) {
  if ((start / n + 1) * n >= start + count) return count;
  if (ceil_divide(start, n) * n + n <= start + count) return n;
  return static_cast<int64_t>(stream.slice(start, count, true).examples.size());
}

// What the batch at `start` costs more than its examples in one piece: its overlap is merged apart from the rest, and the
// one of the batch before comes again.
int64_t gradients_beside_overlap(ExampleStream& stream, int64_t start, const BatchPlan& plan, int64_t n) {
  const int64_t size = plan.batch_size, shared = overlap_of(plan, size);
  const auto cost = [&](int64_t from, int64_t count) {
    return plan.merge_duplicates ? distinct_examples(stream, from, count, n) : count;
  };
  const int64_t parts = cost(start, size - shared) + cost(start + size - shared, shared) - cost(start, size);
  return parts + (start > 0 ? cost(start - shared, shared) : 0);
}

// Exact, because the schedule and the cap depend on it: batches that straddle epochs hold fewer distinct examples.
int64_t updates_for_gradients(const TrainOptions& options, const BatchPlan& plan, int64_t n) {
  ExampleStream stream(static_cast<uint64_t>(options.seed), n);
  const int64_t group = plan.group > 0 ? plan.group : plan.batch_size;
  const int64_t shared = overlap_of(plan, plan.batch_size);
  int64_t gradients = 0, updates = 0;
  while (gradients < options.max_gradients) {
    const int64_t start = updates * plan.batch_size;
    for (int64_t first = 0; first < plan.batch_size; first += group) {
      const int64_t count = std::min(group, plan.batch_size - first);
      gradients +=
          plan.passes * (plan.merge_duplicates ? distinct_examples(stream, start + first, count, n) : count);
    }
    if (shared > 0) gradients += gradients_beside_overlap(stream, start, plan, n);
    ++updates;
  }
  return updates;
}

std::vector<Phase> phases_of_gradients(const TrainOptions& options, const BatchPlan& plan, int64_t n) {
  // Merged, a batch costs the data once: a batch beyond it makes more examples of as many gradients.
  const int64_t images = plan.merge_duplicates ? std::min(plan.batch_size, n) : plan.batch_size;
  const double cost = static_cast<double>(images) * static_cast<double>(plan.passes);
  const double updates = static_cast<double>(options.max_gradients) / cost;
  check_examples(std::max(1.0, updates) * static_cast<double>(plan.batch_size), options,
                 fmt::format("max_gradients = {}", options.max_gradients));
  if (!plan.merge_duplicates && plan.overlap == 0)
    return {{plan.batch_size, ceil_divide(options.max_gradients, plan.batch_size * plan.passes)}};
  return {{plan.batch_size, updates_for_gradients(options, plan, n)}};
}

}  // namespace

double epoch_stretch(const TrainOptions& options) {
  return options.regime_batch == 0
             ? 1
             : static_cast<double>(ceil_divide(options.batch_size, options.regime_batch));
}

RunShape run_shape(const TrainOptions& options, const BatchSchedule& batches, int64_t n) {
  const double epoch = epoch_stretch(options) * static_cast<double>(n);
  return {options.batch_size, batches.updates(), epoch / static_cast<double>(options.batch_size)};
}

BatchSchedule::BatchSchedule(const TrainOptions& options, const BatchPlan& plan, int64_t n)
    : phases_(options.ends_by(Protocol::epochs)    ? phases_of_epochs(options, n)
              : options.ends_by(Protocol::updates) ? phases_of_updates(options)
                                                   : phases_of_gradients(options, plan, n)),
      rate_power_(options.batch_rate_power) {}

int64_t BatchSchedule::updates() const {
  int64_t updates = 0;
  for (const Phase& phase : phases_) updates += phase.updates;
  return updates;
}

int64_t BatchSchedule::examples() const {
  int64_t examples = 0;
  for (const Phase& phase : phases_) examples += phase.updates * phase.batch_size;
  return examples;
}

int64_t BatchSchedule::batch_size(int64_t update) const {
  for (const Phase& phase : phases_) {
    if (update < phase.updates) return phase.batch_size;
    update -= phase.updates;
  }
  return phases_.back().batch_size;
}

double BatchSchedule::rate_factor(int64_t update) const {
  const double grown =
      static_cast<double>(batch_size(update)) / static_cast<double>(phases_.front().batch_size);
  return std::pow(grown, rate_power_);
}

}  // namespace basin
