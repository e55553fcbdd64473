#include "study/candidates.h"

#include "core/error.h"
#include "core/messages.h"
#include "study/quasi_random.h"
#include "study/values.h"

namespace basin {
namespace {

constexpr double kEdge = 0.1;  // of the range

double rounded(double value, int digits = 6) { return std::stod(fmt::format("{:.{}g}", value, digits)); }

Edge edge_of(double unit) { return unit < kEdge ? Edge::low : unit > 1 - kEdge ? Edge::high : Edge::none; }

double factor_of(const SearchRange& range, const RunOptions& options) {
  const double ratio =
      static_cast<double>(options.train.batch_size) / static_cast<double>(options.schedule.base_batch);
  return range.relative_to == "batch" ? ratio : range.relative_to == "sqrt_batch" ? std::sqrt(ratio) : 1;
}

OptionValue as_option(double value, bool whole) {
  if (whole) return static_cast<int64_t>(std::llround(value));
  return value;
}

// By range: whether its option is a whole number.
std::vector<bool> are_whole(const std::vector<SearchRange>& ranges) {
  const RunOptions scratch;
  const OptionView table = scratch.table();
  std::vector<bool> whole;
  for (const SearchRange& range : ranges)
    whole.push_back(std::holds_alternative<int64_t>(table.at(range.key).get()));
  return whole;
}

}  // namespace

std::string to_text(const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings) {
    const auto* number = std::get_if<double>(&value);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key,
                        number ? fmt::format("{:.4g}", *number) : to_toml(value));
  }
  return text;
}

std::string to_toml(const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings) text += (text.empty() ? "" : ", ") + key + " = " + to_toml(value);
  return "{ " + text + " }";
}

void bind_select(OptionTable& table, TuneOptions& options) {
  table.add("select", options.select, one_of({kByLoss, kByErrors, kByGradients}),
            "what the winner has least of: validation loss, the share of the validation examples that it "
            "gets wrong, or "
            "image gradients to the target (protocol B)");
}

void bind_options(OptionTable& table, TuneOptions& options) {
  const Constraint halving{"= 0 (off) or at least 2", [](const OptionValue& value) {
                             const int64_t eta = std::get<int64_t>(value);
                             return eta == 0 || eta >= 2;
                           }};
  bind_select(table, options);
  table.add("trials", options.trials, between(2, 1e6), "settings tried in each group");
  table.add("seeds", options.seeds, distinct(at_least(0)),
            "training seeds of every trial; by default the study's first");
  table.add("sampler_seed", options.sampler_seed, at_least(0),
            "seed that scrambles the sampled points; 0: not scrambled");
  table.add("halving", options.halving, halving, "successive halving: one trial in this many goes on");
  table.add("rungs", options.rungs, at_least(0),
            "rungs of halving; 0: as many as leave `halving` trials in the last");
}

std::string to_text(Edge edge) { return edge == Edge::low ? "low" : edge == Edge::high ? "high" : "none"; }

Settings Candidate::settings() const {
  Settings settings;
  for (const TunedValue& tuned : values) settings.emplace_back(tuned.key, tuned.value);
  return settings;
}

double Candidate::rate() const {
  for (const TunedValue& tuned : values) {
    if (tuned.key == kRate) return std::get<double>(tuned.value);
  }
  return NAN;
}

void bind_options(OptionTable& table, SearchRange& range) {
  table.add("key", range.key, anything(), "option to search");
  table.add("low", range.low, anything(), "lowest value");
  table.add("high", range.high, anything(), "highest value");
  table.add("scale", range.scale, one_of({"log", "linear", "one_minus_log"}),
            "scale on which values are spread evenly");
  table.add("relative_to", range.relative_to, one_of({"none", "batch", "sqrt_batch"}),
            "low and high hold at base_batch and grow with the batch size or its square root");
}

void check(const SearchRange& range) {
  const auto refuse = [&](const std::string& reason) {
    throw ConfigError(fmt::format("{}: the range of {} {}", range.where, range.key, reason));
  };
  if (range.key.empty()) throw ConfigError(range.where + ": the range has no `key`");
  if (std::isnan(range.low)) refuse("has no `low`");
  if (std::isnan(range.high)) refuse("has no `high`");
  if (range.low >= range.high) refuse(fmt::format("has low = {:g} >= high = {:g}", range.low, range.high));
  if (range.scale == "log" && range.low <= 0)
    refuse(fmt::format("has low = {:g}: scale = \"log\" needs low > 0", range.low));
  if (range.scale == "one_minus_log" && range.high >= 1)
    refuse(fmt::format("has high = {:g}: scale = \"one_minus_log\" needs high < 1", range.high));
  if (range.scale == "one_minus_log" && range.relative_to != "none")
    refuse("has scale = \"one_minus_log\" and relative_to, which don't go together");
}

void check(const SearchRange& range, const RunOptions& options) {
  const OptionView schedule = view_of(options.schedule);
  if (!schedule.has(range.key) || !schedule.at(range.key).traits.is_within_run) return;
  if (options.schedule.schedule_unit != "share") return;
  const double high = value_in(range, 1, options);
  if (high <= 1) return;
  throw ConfigError(
      fmt::format("{}: the range of {} ends at {:g}: schedule_unit = \"share\" counts in shares of all "
                  "updates, at most 1",
                  range.where, range.key, high));
}

double value_in(const SearchRange& range, double unit, const RunOptions& options) {
  const double factor = factor_of(range, options);
  if (range.scale == "log") return rounded(factor * range.low * std::pow(range.high / range.low, unit));
  if (range.scale == "linear") return rounded(factor * (range.low + (range.high - range.low) * unit));
  const double shortfall = (1 - range.low) * std::pow((1 - range.high) / (1 - range.low), unit);
  return rounded(1 - rounded(shortfall), 15);  // without the difference's rounding error
}

std::vector<Candidate> sampled_candidates(const std::vector<SearchRange>& ranges, const TuneOptions& tune,
                                          const RunOptions& options) {
  const HaltonSequence sequence(static_cast<int64_t>(ranges.size()), tune.sampler_seed);
  const std::vector<bool> whole = are_whole(ranges);
  std::vector<Candidate> candidates;
  for (int64_t trial = 0; trial < tune.trials; ++trial) {
    const std::vector<double> point = sequence.point(trial);
    Candidate& candidate = candidates.emplace_back();
    candidate.trial = trial;
    for (size_t i = 0; i < ranges.size(); ++i) {
      const double value = value_in(ranges[i], point[i], options);
      candidate.values.push_back({ranges[i].key, as_option(value, whole[i]), point[i], edge_of(point[i])});
    }
  }
  return candidates;
}

std::vector<Candidate> listed_candidates(const std::vector<double>& rates) {
  const auto [least, greatest] = std::minmax_element(rates.begin(), rates.end());
  std::vector<Candidate> candidates;
  std::set<double> seen;
  for (const double rate : rates) {
    if (!seen.insert(rate).second) continue;
    const Edge edge = rate == *least ? Edge::low : rate == *greatest ? Edge::high : Edge::none;
    candidates.push_back({static_cast<int64_t>(candidates.size()), {{kRate, rate, NAN, edge}}});
  }
  return candidates;
}

std::vector<Rung> rungs_of(const TuneOptions& tune, const std::string& where) {
  if (tune.halving == 0) {
    if (tune.rungs > 1)
      throw ConfigError(fmt::format("{}: tune.rungs = {} needs tune.halving", where, tune.rungs));
    return {{tune.trials, 1}};
  }
  std::vector<Rung> rungs;
  const int64_t least = tune.rungs > 0 ? 1 : tune.halving;
  for (int64_t trials = tune.trials; trials >= least; trials /= tune.halving) {
    if (tune.rungs > 0 && static_cast<int64_t>(rungs.size()) == tune.rungs) break;
    rungs.push_back({trials, 1});
  }
  if (rungs.size() < 2 || static_cast<int64_t>(rungs.size()) < tune.rungs) {
    throw ConfigError(fmt::format(
        "{}: tune.halving = {} with tune.trials = {} gives {}, {}", where, tune.halving, tune.trials,
        counted(rungs.size(), "rung"),
        tune.rungs > 0 ? fmt::format("not tune.rungs = {}", tune.rungs) : std::string("nothing to halve")));
  }
  for (size_t i = rungs.size() - 1; i > 0; --i) rungs[i - 1].divisor = rungs[i].divisor * tune.halving;
  return rungs;
}

void divide_budget(RunOptions& options, int64_t divisor) {
  if (divisor == 1) return;
  const auto divided = [&](int64_t count) { return std::max<int64_t>(1, (count + divisor / 2) / divisor); };
  TrainOptions& train = options.train;
  if (train.ends_by(Protocol::epochs))
    train.epochs = train.epochs / static_cast<double>(divisor);
  else if (train.ends_by(Protocol::updates))
    train.updates = divided(train.updates);
  else
    train.max_gradients = divided(train.max_gradients);
}

}  // namespace basin
