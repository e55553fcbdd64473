#include "forecast/evidence.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/error.h"
#include "forecast/comparison.h"

namespace basin {
namespace {

using Group = std::vector<const SmallRun*>;

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double median_over(const Group& group, double SmallRun::*field) {
  std::vector<double> values;
  for (const SmallRun* run : group)
    values.push_back(std::isnan(run->updates) ? std::numeric_limits<double>::infinity() : run->*field);
  return median_of(values);
}

/// NaN where no run has the number.
double geometric_mean(const Group& group, double SmallRun::*field) {
  double sum = 0;
  int64_t count = 0;
  for (const SmallRun* run : group) {
    if (!(run->*field > 0)) continue;
    sum += std::log(run->*field);
    ++count;
  }
  return count > 0 ? std::exp(sum / static_cast<double>(count)) : NAN;
}

/// Groups of one rate, the fastest first; those that most seeds missed are left out.
std::vector<Group> by_speed(const std::map<double, Group>& rates) {
  std::vector<Group> groups;
  for (const auto& [rate, group] : rates)
    if (std::isfinite(median_over(group, &SmallRun::updates))) groups.push_back(group);
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return median_over(a, &SmallRun::updates) < median_over(b, &SmallRun::updates);
  });
  return groups;
}

void take_probed(Evidence& evidence, int64_t batch, const std::vector<Group>& groups) {
  for (const Group& group : groups) {
    const double floor = geometric_mean(group, &SmallRun::floor);
    if (std::isnan(floor)) continue;
    evidence.floor = floor;
    evidence.noise_scale = geometric_mean(group, &SmallRun::noise_scale);
    evidence.probed_batch = batch;
    return;
  }
}

}  // namespace

Evidence evidence_for(const std::string& optimizer, const std::vector<SmallRun>& runs,
                      const std::string& where) {
  std::map<int64_t, std::map<double, Group>> sizes;
  Evidence evidence;
  evidence.optimizer = optimizer;
  for (const SmallRun& run : runs) {
    if (run.optimizer != optimizer) continue;
    if (evidence.arm.empty()) evidence.arm = run.arm;
    if (run.arm != evidence.arm)
      throw ConfigError(fmt::format("{}: runs differ in {}: one forecast has one arm of each optimiser",
                                    where, compared_difference(evidence.arm, run.arm)));
    sizes[run.batch][run.rate].push_back(&run);
  }
  for (const auto& [batch, rates] : sizes) {
    const std::vector<Group> groups = by_speed(rates);
    if (groups.empty()) continue;
    const Group& fastest = groups.front();
    evidence.examples = fastest.front()->examples;
    evidence.sizes.push_back({batch, fastest.front()->rate, median_over(fastest, &SmallRun::updates),
                              median_over(fastest, &SmallRun::effective)});
    take_probed(evidence, batch, groups);
  }
  if (evidence.sizes.empty())
    throw ConfigError(fmt::format(
        "{}: no run with optimizer = \"{}\" reached the target: nothing to forecast from", where, optimizer));
  return evidence;
}

}  // namespace basin
