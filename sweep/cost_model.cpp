#include "sweep/cost_model.h"

#include <algorithm>
#include <queue>

#include "core/error.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "core/process_pool.h"
#include "core/scratch_folder.h"
#include "data/load.h"
#include "data/registry.h"
#include "io/checkpoint.h"
#include "io/status_file.h"
#include "probes/registry.h"
#include "runs/folder.h"
#include "runs/parts.h"
#include "sweep/branch_place.h"
#include "trainers/batch_plan.h"
#include "trainers/batch_schedule.h"
#include "trainers/check_rule.h"
#include "trainers/hooks/example_noise.h"

namespace basin {
namespace {

// Images that an update of `batch` examples computes gradients of: distinct ones, where duplicates are merged.
int64_t images_of(int64_t batch, const BatchPlan& plan, int64_t n) {
  if (!plan.merge_duplicates) return batch;
  const int64_t group = plan.group > 0 ? std::min(plan.group, batch) : batch;
  return batch / group * std::min(group, n) + std::min(batch % group, n);
}

/// Looks at the losses before the last update, of all splits and of the training set alone; the end has its own.
struct Looks {
  int64_t evaluations = 0, checks = 0;
};

Looks looks_of(const TrainOptions& train, const BatchSchedule& batches, int64_t updates) {
  constexpr auto kNever = static_cast<int64_t>(kMostExamples);
  const CheckRule rule(train);
  int64_t next_check = rule.pending(0) ? rule.next_check(0, false) : kNever;
  int64_t next_evaluation = train.evaluate_every > 0 ? train.evaluate_every : kNever;
  Looks looks;
  int64_t examples = 0, before_last = updates - 1;
  for (const auto& [batch, of_phase] : batches.phases()) {
    int64_t left = std::min(of_phase, before_last);
    before_last -= left;
    while (left > 0) {
      const int64_t until = std::min(next_check, next_evaluation) - examples;
      const int64_t steps = std::min(left, (until + batch - 1) / batch);
      examples += steps * batch;
      left -= steps;
      const bool check = examples >= next_check, evaluation = examples >= next_evaluation;
      looks.evaluations += evaluation;
      looks.checks += check && !evaluation;
      if (check) next_check = rule.next_check(examples, false);
      if (evaluation) next_evaluation = examples + train.evaluate_every;
    }
  }
  return looks;
}

// Images looked at outside of updates: checks of the training loss (four times as dense near the target, where a run
// spends a check or two's worth of time), evaluations on the way, and all splits at the end.
double forwards_of(const RunOptions& options, const BatchSchedule& batches, int64_t updates,
                   const SplitSizes& sizes) {
  const TrainOptions& train = options.train;
  const int64_t passes = model_traits(options).batch_statistics ? 2 : 1;  // statistics are re-estimated first
  const int64_t all = passes * sizes.train + sizes.validation + sizes.test;
  const HookCost hooks = train.hooks.cost();
  const Looks looks = looks_of(train, batches, updates);
  const int64_t near_target = train.ends_by(Protocol::matched_loss) ? 4 : 0;
  const int64_t checks = std::min(looks.checks + near_target, updates - 1 - looks.evaluations);
  return static_cast<double>((1 + hooks.evaluations + looks.evaluations) * all +
                             hooks.test_passes * sizes.test + checks * passes * sizes.train);
}

int64_t checkpoints_on_the_way(const RunOptions& options, int64_t updates) {
  const int64_t every = options.train.checkpoint_every;
  return every > 0 ? updates / every : 0;
}

// The start, the end and what was asked for.
int64_t all_checkpoints(const RunOptions& options, int64_t updates) {
  return 2 + static_cast<int64_t>(options.train.loss_levels.size()) +
         checkpoints_on_the_way(options, updates) +
         static_cast<int64_t>(options.train.hooks.cost().checkpoints.size());
}

int64_t probed_checkpoints(const RunOptions& options, int64_t updates) {
  int64_t checkpoints = 0;
  for (const std::string& at : options.probes.at) {
    if (at == "loss")
      checkpoints += static_cast<int64_t>(options.train.loss_levels.size());
    else if (at == "every")
      checkpoints += checkpoints_on_the_way(options, updates);
    else if (at == "all")
      return all_checkpoints(options, updates);
    else
      checkpoints += 1;
  }
  return checkpoints;
}

// A row for each update, and what became of each test example at the end and at loss levels (docs/file-format.md).
double record_bytes(const RunOptions& options, int64_t updates, const SplitSizes& sizes) {
  constexpr double kUpdate = 88, kExample = 25, kRest = 80'000;
  const auto outcomes = static_cast<double>(1 + options.train.loss_levels.size());
  return kUpdate * static_cast<double>(updates) + kExample * outcomes * static_cast<double>(sizes.test) +
         kRest;
}

// Neither false, 0, "" nor [].
bool is_on(const OptionValue& value) {
  return std::visit(
      [](const auto& v) {
        if constexpr (requires { v.empty(); })
          return !v.empty();
        else
          return v != 0;
      },
      value);
}

// What a cell's speed depends on; the rest (batch size, rate, seed, protocol) does not change the cost of an image.
std::string kind_of(const RunOptions& options) {
  std::string kind;
  for (const OptionView& view :
       {options.defining_table(), view_of(options.probes), view_of(options.runtime)}) {
    for (const Option& option : view) {
      if (option.traits.cost == OptionCost::none) continue;
      const bool by_value = option.traits.cost == OptionCost::by_value;
      kind += option.key + " = " +
              (by_value              ? to_toml(option.get())
               : is_on(option.get()) ? "on"
                                     : "off") +
              "\n";
    }
  }
  return kind;
}

constexpr int64_t kLargestTimed = 1024;  // what lies beyond is linear

// A batch size of `images` or less that the micro-benchmark can run: with the noise of a smaller batch it holds that batch and whole
// ghost batches.
int64_t timed_batch(const RunOptions& example, int64_t images) {
  const int64_t capped = std::min(images, kLargestTimed);
  const int64_t noise = example.train.hooks.of<ExampleNoiseOptions>().batch;
  if (noise == 0) return capped;
  const int64_t ghost = ghost_batch_of(example.train);
  return std::max(capped - capped % ghost, noise);
}

// At most four of the batch sizes, the smallest and largest among them.
std::vector<int64_t> benchmark_batches(const RunOptions& example, const std::set<int64_t>& images) {
  std::set<int64_t> capped;
  for (const int64_t count : images) capped.insert(timed_batch(example, count));
  std::vector<int64_t> all(capped.begin(), capped.end());
  if (all.size() <= 4) return all;
  return {all.front(), all[all.size() / 3], all[2 * all.size() / 3], all.back()};
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

CellWork plan_work(const Cell& cell, const SplitSizes& sizes, bool with_probes, const BranchPoint* point) {
  const RunOptions& options = cell.options;
  CellWork work;
  const BatchPlan plan = batch_plan_of(options);
  const BatchSchedule batches(options.train, plan, sizes.train);
  // Refuses what this many updates make impossible, before a worker would.
  const RateSchedule possible(options.schedule, options.train.learning_rate, /*gain=*/1,
                              run_shape(options.train, batches, sizes.train));
  const int64_t annealing =
      point ? anneal_length(options.train.branch.anneal, point->update, optimizer_traits(options).momentum)
            : 0;
  const Course course(options.train, batches, point, annealing);
  options.train.hooks.check_updates(course.total());
  const int64_t updates_left = course.total() - course.first();
  const double planned = static_cast<double>(updates_left);
  const double images = sum_over_updates(
      batches, course.position(course.first()), updates_left,
      [&](int64_t batch) { return static_cast<double>(images_of(batch, plan, sizes.train)); });
  const double passes = static_cast<double>(plan.passes);
  work.images_per_update = images / planned;
  work.updates = updates_left;
  if (cell.expected_gradients > 0 && options.train.ends_by(Protocol::matched_loss) && !course.anneals()) {
    work.gradients_expected = true;
    const double gradients = cell.expected_gradients - (point ? static_cast<double>(point->gradients) : 0);
    const double updates = std::ceil(gradients / (passes * work.images_per_update));
    work.updates = static_cast<int64_t>(std::clamp(updates, 1.0, planned));
  }
  const double share = static_cast<double>(work.updates) / planned;
  work.gradients = share * images * passes;
  work.forwards = forwards_of(options, batches, work.updates, sizes);
  if (point)
    work.forwards += static_cast<double>(sizes.train + sizes.validation + sizes.test);  // at its start
  work.checkpoints = all_checkpoints(options, work.updates);
  work.record_bytes = record_bytes(options, work.updates, sizes);
  if (!with_probes) return work;
  const int64_t subset = options.probes.subset;
  const double examples = static_cast<double>(subset == 0 ? sizes.train : std::min(subset, sizes.train));
  const double probed = static_cast<double>(probed_checkpoints(options, work.updates)) * examples;
  std::vector<std::string> probes = options.probes.run;
  probes.insert(probes.end(), options.probes.twin.begin(), options.probes.twin.end());
  work.probe_files = probed_checkpoints(options, work.updates) * static_cast<int64_t>(probes.size());
  for (const std::string& probe : probes) {
    const ProbeEntry& entry = find_entry(probe_registry(), probe, "probe");
    const ProbeCost cost = entry.make(options.probe_options.at(probe))->expected_cost();
    work.probe_gradients += probed * cost.gradients;
    work.probe_hvps += probed * cost.hvps;
  }
  return work;
}

double update_seconds(const CellSpeed& speed, double images) {
  const std::vector<double>& x = speed.batch;
  const std::vector<double>& y = speed.update_seconds;
  if (x.size() == 1) return y[0] * images / x[0];
  size_t right = 1;
  while (right + 1 < x.size() && x[right] < images) ++right;
  const double slope = (y[right] - y[right - 1]) / (x[right] - x[right - 1]);
  const double inside = y[right - 1] + slope * (images - x[right - 1]);
  // Noise can turn a slope over: an image is never cheaper than a fifth of the mean cost at the largest batch.
  return std::max(inside, 0.2 * images * y.back() / x.back());
}

double expected_seconds(const CellWork& work, const CellSpeed& speed) {
  return speed.start_up + static_cast<double>(work.updates) * update_seconds(speed, work.images_per_update) +
         work.forwards * speed.forward + expected_probe_seconds(work, speed);
}

double expected_probe_seconds(const CellWork& work, const CellSpeed& speed) {
  return work.probe_gradients * speed.probe_gradient + work.probe_hvps * speed.probe_hvp;
}

DiskUse expected_disk(const CellWork& work, const CellSpeed& speed) {
  constexpr int64_t kRecords = 7;        // options twice, status, log, lock, journal, run.h5
  constexpr double kProbeFile = 50'000;  // bytes
  const int64_t probes = work.probe_files > 0 ? work.probe_files + 2 : 0;  // and their lock and list
  // The journal has the record as well, uncompressed.
  return {kRecords + work.checkpoints + probes,
          3 * work.record_bytes + static_cast<double>(work.checkpoints) * speed.checkpoint_bytes +
              static_cast<double>(work.probe_files) * kProbeFile};
}

namespace {

CellWork work_of(const Cell& cell, const SplitSizes& sizes, bool with_probes, const BranchPoint* point) {
  try {
    return plan_work(cell, sizes, with_probes, point);
  } catch (const ConfigError& error) {
    throw ConfigError(cell.label + ": " + error.what());
  }
}

}  // namespace

CostModel::CostModel(const std::vector<Cell>& cells, bool with_probes)
    : CostModel(cells, std::vector<bool>(cells.size(), with_probes)) {}

CostModel::CostModel(const std::vector<Cell>& cells, const std::vector<bool>& probed) {
  CellSpeed round;
  round.batch = {32, 1024};
  round.update_seconds = {6e-3, 0.15};
  std::map<std::string, Asked> by_id;
  for (size_t i = 0; i < cells.size(); ++i) by_id.emplace(cells[i].run_id, Asked{&cells[i], probed.at(i)});
  std::map<std::string, ExpectedRun> expected;
  for (const Cell& cell : cells) expect(by_id.at(cell.run_id), by_id, expected, round);
}

double CostModel::seconds_left(const Cell& cell, const RunStatus& status) const {
  const Cost& cost = costs_.at(cell.run_id);
  if (is_final(status.status)) return cost.probe_seconds;
  // Under protocol B `done` is a share of the cap, which [[sweep.expect]] may be far below. A branch counts its parent's updates along.
  const double of_updates = cell.options.train.branch.exists()
                                ? 0
                                : static_cast<double>(status.update) / static_cast<double>(cost.work.updates);
  const double made = std::clamp(std::max(status.done, of_updates), 0.0, 1.0);
  return cost.probe_seconds + (1 - made) * (cost.seconds - cost.probe_seconds);
}

// The parent's first: a branch costs what comes after the place where it leaves it.
const ExpectedRun& CostModel::expect(const Asked& asked, const std::map<std::string, Asked>& cells,
                                     std::map<std::string, ExpectedRun>& expected, const CellSpeed& speed) {
  const auto& [planned, probed] = asked;
  const Cell& cell = *planned;
  const auto known = expected.find(cell.run_id);
  if (known != expected.end()) return known->second;
  throw_if_interrupted();
  const SplitSizes sizes = sizes_of(cell.options);
  const BranchOptions& branch = cell.options.train.branch;
  std::optional<BranchPoint> point;
  if (const auto parent = cells.find(branch.from); parent != cells.end()) {
    point = expected_point(expect(parent->second, cells, expected, speed), branch.at);
  } else if (branch.exists()) {
    point.emplace();  // of a file the number of updates alone is known
    if (!branch.path.empty()) point->update = read_checkpoint_update(branch.path);
    point->examples = point->gradients = point->update * cell.options.train.batch_size;
  }
  const CellWork work = work_of(cell, sizes, probed, point ? &*point : nullptr);
  const std::string kind = kind_of(cell.options);
  costs_[cell.run_id] = {work, expected_seconds(work, speed), expected_probe_seconds(work, speed),
                         expected_disk(work, speed), kind};
  const auto inserted = kinds_.emplace(kind, Kind{cell.options, {}});
  inserted.first->second.images.insert(static_cast<int64_t>(work.images_per_update));
  return expected[cell.run_id] = {&cell.options, point.value_or(BranchPoint{}), work.updates, sizes.train};
}

SplitSizes CostModel::sizes_of(const RunOptions& options) {
  const std::string key = view_of(options.data).to_toml();
  const auto known = sizes_.find(key);
  if (known != sizes_.end()) return known->second;
  std::string message;
  const SplitSizes sizes = split_sizes(options.data, message);
  if (!message.empty()) notes_.push_back(message);
  sizes_[key] = sizes;
  return sizes;
}

std::vector<CostModel::Timing> CostModel::prepare_timings(const std::string& folder, int64_t jobs,
                                                          int64_t threads) const {
  // As many at once as in the sweep, for they share caches and memory: the last round is filled with repetitions.
  const int64_t kinds = static_cast<int64_t>(kinds_.size());
  const int64_t count = (kinds + jobs - 1) / jobs * jobs;
  std::vector<Timing> timings;
  for (int64_t i = 0; i < count; ++i) {
    const auto& [kind, example] = *std::next(kinds_.begin(), i % kinds);
    timings.push_back({kind, folder + "/" + std::to_string(i)});
    make_folders(timings.back().folder);
    RunOptions options = example.example;
    options.runtime.threads = threads;
    options.runtime.progress = false;
    write_cell_file(timings.back().folder, options);
  }
  return timings;
}

std::map<std::string, std::vector<CellSpeed>> CostModel::time_round(const WorkerProgram& program,
                                                                    int64_t threads,
                                                                    const std::vector<Timing>& round) const {
  ProcessPool pool;
  for (size_t i = 0; i < round.size(); ++i) {
    ProcessJob job{std::to_string(i),
                   program,
                   {"time-cell", round[i].folder},
                   round[i].folder + "/log",
                   {{"OMP_NUM_THREADS", std::to_string(threads)}},
                   600};
    const Kind& kind = kinds_.at(round[i].kind);
    for (const int64_t batch : benchmark_batches(kind.example, kind.images)) {
      job.arguments.push_back(std::to_string(batch));
    }
    pool.start(job);
  }
  std::map<std::string, std::vector<CellSpeed>> measured;
  while (pool.running() > 0) {
    throw_if_interrupted();
    for (const ProcessResult& result : pool.collect(0.2)) {
      const auto& [kind, folder] = round[static_cast<size_t>(std::stoll(result.id))];
      if (!result.ok()) {
        throw NumericError(fmt::format("the cost model's micro-benchmark failed ({}): {}", result.describe(),
                                       first_line(read_file(folder + "/log"))));
      }
      CellSpeed speed = parse_speed(read_file(folder + "/speed.toml"), folder + "/speed.toml");
      speed.start_up = std::max(0.0, result.seconds - speed.measured_seconds);
      measured[kind].push_back(speed);
    }
  }
  return measured;
}

void CostModel::calibrate(const WorkerProgram& program, int64_t jobs, int64_t threads) {
  const ScratchFolder scratch("basin-timing");
  const std::vector<Timing> timings = prepare_timings(scratch.path(), jobs, threads);
  std::map<std::string, std::vector<CellSpeed>> measured;
  for (auto start = timings.begin(); start != timings.end(); start += jobs) {
    for (auto& [kind, speeds] : time_round(program, threads, {start, start + jobs})) {
      measured[kind].insert(measured[kind].end(), speeds.begin(), speeds.end());
    }
  }
  for (auto& [run_id, cost] : costs_) {
    const std::vector<CellSpeed>& speeds = measured.at(cost.kind);
    double sum = 0, of_probes = 0;
    for (const CellSpeed& speed : speeds) {
      sum += expected_seconds(cost.work, speed);
      of_probes += expected_probe_seconds(cost.work, speed);
    }
    cost.seconds = sum / static_cast<double>(speeds.size());
    cost.probe_seconds = of_probes / static_cast<double>(speeds.size());
    cost.disk = expected_disk(cost.work, speeds.front());
  }
}

double makespan(const std::vector<double>& seconds, int64_t workers) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (int64_t i = 0; i < workers; ++i) free_at.push(0);
  double end = 0;
  for (const double length : seconds) {
    const double finish = free_at.top() + length;
    free_at.pop();
    free_at.push(finish);
    end = std::max(end, finish);
  }
  return end;
}

SplitSizes split_sizes(const DataOptions& options, std::string& message) {
  try {
    const Dataset data = load_dataset(options);
    return {data.train.size(), data.validation.size(), data.test.size()};
  } catch (const DataError& error) {
    const auto& manifest = find_entry(dataset_registry(), options.set, "data set").manifest;
    if (!manifest || manifest->is_text()) throw;  // how many examples there are isn't published
    message = fmt::format("{}; the cost assumes the published size of {}", error.what(), options.set);
  }
  SplitSizes sizes;
  for (const ManifestFile& file : manifest_of(options.set).files) {
    if (file.role != FileRole::labels) (file.test ? sizes.test : sizes.train) += file.examples;
  }
  sizes.validation =
      static_cast<int64_t>(std::llround(options.validation * static_cast<double>(sizes.train)));
  sizes.train -= sizes.validation;
  if (options.train_examples > 0) sizes.train = std::min(sizes.train, options.train_examples);
  if (options.test_examples > 0) sizes.test = std::min(sizes.test, options.test_examples);
  return sizes;
}

}  // namespace basin
