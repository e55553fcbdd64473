#include "runs/probe_progress.h"

#include <filesystem>
#include <fstream>

#include "core/files.h"
#include "core/progress.h"
#include "probes/registry.h"

namespace basin {
namespace {

constexpr double kHvp = 2.5;  // a Hessian-vector product in gradients, as --dry-run counts it

std::string progress_path(const std::string& run_folder) { return run_folder + "/probes/progress"; }

}  // namespace

std::string to_text(const ProbeStep& step) {
  std::string text = fmt::format("{}/{}: {} {}", step.number, step.total, step.checkpoint, step.probe);
  if (std::isfinite(step.seconds_left)) text += ", about " + format_duration(step.seconds_left) + " left";
  return text;
}

ProbeCountdown::ProbeCountdown(const ProbePlan& plan, const OptionSets& probe_options, size_t checkpoints) {
  std::vector<std::string> probes = plan.run;
  probes.insert(probes.end(), plan.twin.begin(), plan.twin.end());
  for (const std::string& probe : probes) {
    const ProbeCost cost =
        find_entry(probe_registry(), probe, "probe").make(probe_options.at(probe))->expected_cost();
    Pace& pace = paces_[probe];
    pace.cost = cost.gradients + kHvp * cost.hvps;
    pace.left += static_cast<int64_t>(checkpoints);
    total_ += static_cast<int64_t>(checkpoints);
  }
}

ProbeStep ProbeCountdown::begin(const std::string& checkpoint, const std::string& probe) {
  at_work_ = probe;
  start_ = Clock::now();
  return {++begun_, total_, checkpoint, probe, seconds_left()};
}

void ProbeCountdown::end(bool measured) {
  Pace& pace = paces_.at(at_work_);
  --pace.left;
  if (!measured) return;
  ++pace.measured;
  pace.seconds += seconds_since(start_);
}

double ProbeCountdown::seconds_left() const {
  double seconds = 0, cost = 0;  // of what was measured
  for (const auto& [probe, pace] : paces_) {
    seconds += pace.seconds;
    cost += static_cast<double>(pace.measured) * pace.cost;
  }
  double left = 0;
  for (const auto& [probe, pace] : paces_) {
    const double each = pace.measured > 0 ? pace.seconds / static_cast<double>(pace.measured)
                        : cost > 0        ? pace.cost * seconds / cost
                                          : NAN;
    if (pace.left > 0) left += static_cast<double>(pace.left) * each;
  }
  return left;
}

void write_probe_progress(const std::string& run_folder, const ProbeStep& step) {
  write_file_atomically(progress_path(run_folder),
                        fmt::format("{} {} {} {} {:.1f}\n", step.number, step.total, step.checkpoint,
                                    step.probe, std::isfinite(step.seconds_left) ? step.seconds_left : -1));
}

std::optional<ProbeStep> read_probe_progress(const std::string& run_folder) {
  std::ifstream file(progress_path(run_folder));
  ProbeStep step;
  if (!(file >> step.number >> step.total >> step.checkpoint >> step.probe >> step.seconds_left))
    return std::nullopt;
  if (step.seconds_left < 0) step.seconds_left = NAN;
  return step;
}

double seconds_since_probe_progress(const std::string& run_folder) {
  std::error_code missing;
  const auto written = std::filesystem::last_write_time(progress_path(run_folder), missing);
  if (missing) return NAN;
  return std::chrono::duration<double>(std::filesystem::file_time_type::clock::now() - written).count();
}

void remove_probe_progress(const std::string& run_folder) {
  std::error_code gone;
  std::filesystem::remove(progress_path(run_folder), gone);
}

}  // namespace basin
