#include "sweep/scaling/measure.h"

#include <ATen/ops/ones.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "core/clock.h"
#include "core/device.h"
#include "core/error.h"
#include "core/math/statistics.h"
#include "core/messages.h"
#include "core/provenance.h"
#include "data/load.h"
#include "hessian/curvature_operator.h"
#include "runs/parts.h"
#include "trainers/batch_plan.h"

namespace basin {
namespace {

constexpr int64_t kSmall = 16;                                   // examples
constexpr int64_t kSmallestSum = 1 << 8, kLargestSum = 1 << 24;  // bytes
constexpr double kSecondsPerSum = 0.1;                           // of sums of one size
constexpr double kWarmUp = 1;                                    // a connection's first second is slower
constexpr size_t kLeastSums = 20;                                // of one size

/// What is timed: a run, and its data.
struct Subject {
  RunOptions options;
  std::shared_ptr<const Dataset> data;
  TimedSizes sizes;
};

int64_t ranks_that_can_share(const RunOptions& options, int64_t batch) {
  return most_ranks(updates_only(options, batch));
}

/// Before anything is timed.
void check_shares(const std::string& label, const RunOptions& options, const TimedSizes& sizes, int most) {
  for (const int64_t batch : {sizes.strong, sizes.weak * most}) {
    const int64_t shares = ranks_that_can_share(options, batch);
    if (shares < most)
      throw ConfigError(fmt::format("{}: a batch of {} can be shared by {}, not by {}", label, batch,
                                    counted(shares, "rank"), most));
  }
}

std::vector<Subject> subjects_of(const std::vector<Cell>& cells, int most) {
  std::map<std::string, std::shared_ptr<const Dataset>> read;
  std::vector<Subject> subjects;
  for (const Cell& cell : cells) {
    RunOptions options = by_itself(cell.options);
    std::shared_ptr<const Dataset>& data = read[view_of(options.data).to_toml()];
    if (!data) data = std::make_shared<const Dataset>(load_dataset(options.data));
    const TimedSizes sizes = timed_sizes(options, most, data->train.size());
    check_shares(cell.label, options, sizes, most);
    subjects.push_back({std::move(options), data, sizes});
  }
  return subjects;
}

/// The group of the first ranks; on the others none.
struct Part {
  std::unique_ptr<RankGroup> group;
  bool on_one_host = false;
};

std::vector<Part> parts_of(const RankGroup& ranks, const std::vector<std::string>& hosts) {
  std::vector<Part> parts;
  for (const int count : rank_counts(ranks.size()))
    parts.push_back(
        {ranks.first(count), std::set<std::string>(hosts.begin(), hosts.begin() + count).size() == 1});
  return parts;
}

class Measurement {
 public:
  Measurement(const std::vector<Cell>& cells, const RankGroup& ranks, const RankScalingRequest& request,
              const std::function<void(double)>& step)
      : ranks_(ranks),
        request_(request),
        step_(step),
        device_(ranks.use_device(apply_runtime(cells.front().options.runtime))),
        subjects_(subjects_of(cells, ranks.size())),
        found_{ranks.gather(host_name()), {}, {}, {}},
        parts_(parts_of(ranks, found_.hosts)) {}

  RankScaling run() {
    const double all = static_cast<double>(request_.rounds) * static_cast<double>(parts_.size());
    double done = 0;
    for (int64_t round = 0; round < request_.rounds; ++round) {
      for (size_t i = 0; i < parts_.size(); ++i) {
        const Part& part = parts_[(i + static_cast<size_t>(round)) % parts_.size()];
        if (part.group) measure(part, round + 1);
        ranks_.any(false);  // the others wait for the first
        step_(++done / all);
      }
    }
    for (const Part& part : parts_)
      if (part.group) part.group->leave();
    return std::move(found_);
  }

 private:
  void measure(const Part& part, int64_t round) {
    const int64_t ranks = part.group->size();
    for (const Subject& subject : subjects_) {
      const TimedSizes& sizes = subject.sizes;
      time(subject, part, round, "strong", sizes.strong);
      time(subject, part, round, "weak", sizes.weak * ranks);
      if (ranks_that_can_share(subject.options, sizes.small * ranks) >= ranks)
        time(subject, part, round, "small", sizes.small * ranks);
    }
    time_products(subjects_.front(), *part.group, round);
    if (ranks > 1) time_sums(*part.group, round);
  }

  void time(const Subject& subject, const Part& part, int64_t round, const std::string& scaling,
            int64_t batch) {
    found_.updates.push_back(
        {subject.options.optimizer, scaling, part.group->size(), batch, round,
         time_updates(subject.options, *subject.data, device_, batch, {request_.seconds}, *part.group),
         part.on_one_host});
  }

  /// What `pass` takes, by rank 0's clock, after one that isn't timed. The question whether there is to be another isn't timed either.
  std::pair<double, int64_t> seconds_of(const RankGroup& group, const std::function<void()>& pass) const {
    double seconds = 0;
    int64_t passes = -1;
    do {
      wait_for(device_);
      const Clock::time_point start = Clock::now();
      pass();
      wait_for(device_);
      if (passes++ >= 0) seconds += seconds_since(start);
    } while (group.any(group.is_first() && (passes < 1 || seconds < request_.seconds)));
    return {seconds / static_cast<double>(passes), passes};
  }

  void time_products(const Subject& subject, const RankGroup& group, int64_t round) {
    const int64_t all = subject.data->train.size(), asked = subject.options.probes.subset;
    const int64_t examples = asked == 0 ? all : std::min(asked, all);
    Objective objective = probed_objective(subject.options, *subject.data, device_, examples);
    objective.share_over(group);
    CurvatureOperator hessian(objective, Curvature::hessian);
    const at::Tensor direction =
        at::ones({hessian.size()}, at::TensorOptions(hessian.dtype()).device(device_));
    const auto [seconds, timed] = seconds_of(group, [&] { hessian.apply(direction); });
    found_.products.push_back({group.size(), round, examples, seconds, timed});
  }

  void time_sums(const RankGroup& group, int64_t round) {
    sums_of(group, kLargestSum, kWarmUp);
    for (int64_t bytes = kLargestSum; bytes >= kSmallestSum; bytes /= 4) {
      const std::vector<double> times = sums_of(group, bytes, kSecondsPerSum);
      found_.sums.push_back({group.size(), round, bytes, median(times), static_cast<int64_t>(times.size())});
    }
  }

  /// Seconds of each sum.
  std::vector<double> sums_of(const RankGroup& group, int64_t bytes, double seconds) const {
    const at::Tensor tensor = at::ones({bytes / 4}, at::TensorOptions(at::kFloat).device(device_));
    std::vector<double> times;
    const Clock::time_point start = Clock::now();
    while (group.any(group.is_first() && (times.size() < kLeastSums || seconds_since(start) < seconds))) {
      tensor.fill_(1);
      wait_for(device_);
      const Clock::time_point before = Clock::now();
      group.sum(tensor);
      wait_for(device_);
      times.push_back(seconds_since(before));
    }
    return times;
  }

  const RankGroup& ranks_;
  const RankScalingRequest& request_;
  const std::function<void(double)>& step_;
  c10::Device device_;
  std::vector<Subject> subjects_;
  RankScaling found_;
  std::vector<Part> parts_;
};

}  // namespace

TimedSizes timed_sizes(const RunOptions& cell, int most, int64_t train_examples) {
  const TrainOptions& train = cell.train;
  const bool has_ghosts = model_traits(cell).batch_statistics, merges = batch_plan_of(cell).merge_duplicates;
  const int64_t strong = merges ? std::min(train.batch_size, train_examples) : train.batch_size;
  const int64_t unit = has_ghosts ? ghost_batch_of(train) : 1;
  const int64_t weak = std::max(unit, strong / most / unit * unit);
  // Without a ghost_batch of the study's, a batch below 256 is one.
  const int64_t least = has_ghosts && train.ghost_batch > 0 ? unit : 1;
  return {strong, weak, std::min(weak, std::max(least, kSmall / least * least))};
}

std::vector<Cell> cells_to_scale(const std::vector<Cell>& cells) {
  std::vector<Cell> largest;
  for (const Cell& cell : cells) {
    const auto same = std::find_if(largest.begin(), largest.end(), [&](const Cell& other) {
      return other.options.optimizer == cell.options.optimizer;
    });
    if (same == largest.end())
      largest.push_back(cell);
    else if (cell.options.train.batch_size > same->options.train.batch_size)
      *same = cell;
  }
  return largest;
}

std::vector<int> rank_counts(int size) {
  std::vector<int> counts;
  for (int count = 1; count < size; count *= 2) counts.push_back(count);
  counts.push_back(size);
  return counts;
}

RankScaling measure_rank_scaling(const std::vector<Cell>& cells, const RankGroup& ranks,
                                 const RankScalingRequest& request, const std::function<void(double)>& step) {
  if (ranks.is_alone())
    throw ConfigError(
        "one rank has nothing to compare with: --ranks 2 or more, or start it by torchrun, mpirun or srun");
  return Measurement(cells, ranks, request, step).run();
}

}  // namespace basin
