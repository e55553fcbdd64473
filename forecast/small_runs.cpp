#include "forecast/small_runs.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "core/hash.h"
#include "core/math/nan.h"
#include "forecast/comparison.h"
#include "forecast/small_only.h"
#include "io/probe_file.h"
#include "io/run_file.h"
#include "runs/probe_settings.h"
#include "study/run_options.h"

namespace basin {
namespace fs = std::filesystem;
namespace {

constexpr double kHvp = 2.5;  // image gradients, as in a sweep's forecast of costs

/// A number along the run: known at some updates.
using Places = std::map<double, double>;

double log_between(const Places& places, double update) {
  const auto after = places.lower_bound(update);
  if (after == places.end()) return places.rbegin()->second;
  if (after == places.begin()) return after->second;
  const auto before = std::prev(after);
  const double share = (update - before->first) / (after->first - before->first);
  return before->second * std::pow(after->second / before->second, share);
}

double attribute(const ProbeRecord& probe, const std::string& name) {
  for (const auto& [key, value] : probe.attributes) {
    if (key != name) continue;
    if (const double* number = std::get_if<double>(&value)) return *number;
    if (const int64_t* number = std::get_if<int64_t>(&value)) return static_cast<double>(*number);
  }
  return kNaN;
}

double number_of(const RunRecord& record, const std::string& name) {
  for (const auto* list : {&record.header.options, &record.summary, &record.header.data}) {
    for (const auto& [key, value] : *list) {
      if (key != name) continue;
      if (const double* number = std::get_if<double>(&value)) return *number;
      if (const int64_t* number = std::get_if<int64_t>(&value)) return static_cast<double>(*number);
    }
  }
  return kNaN;
}

/// Whether these weights are points of the run's path: neither its twin's nor averaged ones.
bool on_the_path(const ProbeRecord& probe) {
  return probe.checkpoint != "average" && probe.checkpoint.find('@') == std::string::npos;
}

struct Probed {
  Places curvature, noise;
  double limit = kNaN, cost = 0;
};

/// The first entry of the quantity where it is resolved and positive.
void take(const ProbeRecord& probe, const std::string& quantity, Places& places) {
  const double update = attribute(probe, "update");
  for (const Quantity& q : probe.quantities) {
    if (q.name != quantity || q.value.empty() || q.status_of(0) != ProbeStatus::ok) continue;
    if (std::isfinite(update) && q.value[0] > 0) places[update] = q.value[0];
  }
}

Probed read_probes(const fs::path& folder, const fs::path& out, std::vector<InputFile>& files) {
  Probed found;
  if (!fs::is_directory(folder / "probes")) return found;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder / "probes"))
    if (entry.path().extension() == ".h5") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    const ProbeRecord probe = read_probe_file(path.string());
    const double gradients = attribute(probe, "gradients"), hvps = attribute(probe, "hvps");
    found.cost += attribute(probe, "n_examples") *
                  ((std::isfinite(gradients) ? gradients : 0) + (std::isfinite(hvps) ? kHvp * hvps : 0));
    files.push_back({fs::relative(path, out).string(), sha256_of_file(path.string())});
    if (!is_studys_own(path.string(), probe) || !on_the_path(probe)) continue;
    if (probe.probe == "noise_scale") take(probe, "b_simple_finite", found.noise);
    if (probe.probe != "preconditioned_curvature") continue;  // others have a "lambda" too
    take(probe, "lambda", found.curvature);
    found.limit = attribute(probe, "frozen_stability_limit");
  }
  return found;
}

/// Rates of the updates 1 .. count.
std::vector<double> rates_of(const RunRecord& record, int64_t count) {
  const Table& train = record.tables.at("train");
  std::vector<double> rates = train.column("learning_rate");
  rates.resize(std::min<size_t>(rates.size(), static_cast<size_t>(count)));
  return rates;
}

void take_way(SmallRun& run, const RunRecord& record, const Probed& probed) {
  const std::vector<double> rates = rates_of(record, static_cast<int64_t>(run.updates));
  const double peak = number_of(record, "peak_learning_rate");
  double effective = 0, floor = 0, noise = 0;
  for (size_t t = 0; t < rates.size(); ++t) {
    effective += rates[t] / peak;
    if (probed.curvature.empty()) continue;
    const double used = rates[t] * log_between(probed.curvature, static_cast<double>(t + 1)) / probed.limit;
    floor += used;
    if (!probed.noise.empty()) noise += used * log_between(probed.noise, static_cast<double>(t + 1));
  }
  run.effective = effective;
  run.floor = floor > 0 ? floor : kNaN;
  run.noise_scale = floor > 0 && noise > 0 ? noise / floor : kNaN;
}

void require_matched_loss(const RunOptions& options, const fs::path& folder) {
  if (!options.train.ends_by(Protocol::matched_loss))
    throw ConfigError(fmt::format("{}: protocol = \"{}\": a forecast takes runs of protocol B",
                                  folder.string(), options.train.protocol));
}

SmallRun read_run(const fs::path& folder, const fs::path& out, const RunOptions& options,
                  std::vector<InputFile>& files) {
  const RunRecord record = read_run_file((folder / "run.h5").string());
  SmallRun run;
  if (!is_final(record.status)) return run;  // one that is still on its way has missed nothing
  run.run_id = record.header.run_id;
  run.optimizer = options.optimizer;
  run.batch = options.train.batch_size;
  run.rate = options.train.learning_rate;
  run.seed = options.train.seed;
  run.setting = setting_text(options);
  run.arm = arm_text(options);
  run.examples = static_cast<int64_t>(number_of(record, "n_train"));
  files.push_back(
      {fs::relative(folder / "run.h5", out).string(), sha256_of_file((folder / "run.h5").string())});
  const Probed probed = read_probes(folder, out, files);
  run.probe_cost = probed.cost;
  if (record.status == RunState::finished) run.updates = number_of(record, "steps_to_target");
  if (std::isfinite(run.updates)) take_way(run, record, probed);
  return run;
}

std::vector<fs::path> folders_of(const std::string& out) {
  std::vector<fs::path> found;
  for (const char* room : {"runs", "tuning"}) {
    if (!fs::is_directory(fs::path(out) / room)) continue;
    for (const auto& entry : fs::directory_iterator(fs::path(out) / room))
      if (fs::exists(entry.path() / "config.toml")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  if (found.empty()) throw IoError(out + ": no runs/ with runs: not the folder of a sweep");
  return found;
}

void require_alike(const SmallRuns& found, const std::string& out) {
  for (const SmallRun& run : found.runs) {
    if (run.examples <= kLargestSmallBatch)
      throw ConfigError(
          fmt::format("{}: {} training examples: batch sizes up to {} have the full batch: "
                      "nothing to forecast",
                      out, run.examples, kLargestSmallBatch));
    const SmallRun& first = found.runs.front();
    if (run.setting != first.setting)
      throw ConfigError(fmt::format("{}: runs {} and {} differ in {}: one forecast is of one setting", out,
                                    first.run_id, run.run_id,
                                    compared_difference(first.setting, run.setting)));
  }
}

}  // namespace

SmallRuns read_small_runs(const std::string& out) {
  const std::vector<fs::path> folders = folders_of(out);
  std::vector<RunOptions> options;
  for (const fs::path& folder : folders)
    options.push_back(load_run_options((folder / "config.toml").string(), {}));
  require_small_batches(out, folders, options);
  for (size_t i = 0; i < folders.size(); ++i) require_matched_loss(options[i], folders[i]);
  SmallRuns found;
  for (size_t i = 0; i < folders.size(); ++i) {
    if (!fs::exists(folders[i] / "run.h5")) continue;
    SmallRun run = read_run(folders[i], out, options[i], found.files);
    if (run.examples > 0) found.runs.push_back(std::move(run));
  }
  if (found.runs.empty()) throw IoError(out + ": none of its runs has ended");
  require_alike(found, out);
  return found;
}

}  // namespace basin
