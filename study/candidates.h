// defines: TuneOptions, SearchRange, Candidate: what tuning tries in each group, and Rung: who goes on with
// more budget.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "study/run_options.h"

namespace basin {

/// Options and the values they are given, learning_rate first.
using Settings = std::vector<std::pair<std::string, OptionValue>>;
/// "learning_rate 0.05, sgd.momentum 0.93", four digits: for people.
std::string to_text(const Settings& settings);
/// "{ learning_rate = 0.05, sgd.momentum = 0.93 }".
std::string to_toml(const Settings& settings);

inline constexpr const char* kByLoss = "validation_loss";
inline constexpr const char* kByErrors = "validation_errors";
inline constexpr const char* kByGradients = "gradients";

/// [tune]; docs/study.md.
struct TuneOptions {
  std::string select = kByLoss;  // or kByErrors, kByGradients: what the winner has least of
  int64_t trials = 16;           // in each group: the budget is equal for all
  std::vector<int64_t> seeds;
  int64_t sampler_seed = 1;
  int64_t halving = 0;
  int64_t rungs = 0;
};
void bind_options(OptionTable& table, TuneOptions& options);
void bind_select(OptionTable& table, TuneOptions& options);

/// Where in its range a value lies: within a tenth of an end on the range's own scale, or the first or last
/// of a list.
enum class Edge { none, low, high };
std::string to_text(Edge edge);

struct TunedValue {
  std::string key;
  OptionValue value;
  double unit = NAN;  // place in the range, 0 to 1 on its own scale; of a list NaN
  Edge edge = Edge::none;
};

/// A setting to try.
struct Candidate {
  int64_t trial = 0;  // from 0; the same number is the same point of the unit cube in every group
  std::vector<TunedValue> values;

  Settings settings() const;
  double rate() const;  // of learning_rate
};

/// One of the keys that are searched: [[tune.range]] without its `when`.
struct SearchRange {
  std::string key;
  double low = NAN, high = NAN;
  std::string scale = "log";         // log | linear | one_minus_log
  std::string relative_to = "none";  // none | batch | sqrt_batch: low and high hold at base_batch
  std::string where;
};
void bind_options(OptionTable& table, SearchRange& range);
/// ConfigError for ends that are missing, the wrong way round, or outside of what the key or the scale takes.
void check(const SearchRange& range);
/// ConfigError for a warm-up whose end is no share of the run where the other options count in shares.
void check(const SearchRange& range, const RunOptions& options);

/// u in [0, 1) to a value: log low (high/low)^u; linear low + (high - low) u; one_minus_log 1 - (1-low)
/// ((1-high)/(1-low))^u, so that 1 - value is spread evenly in its logarithm. Rounded to six digits (of 1 -
/// value for one_minus_log), so that a run's id doesn't depend on the last bit of this machine's pow().
/// Ends are multiplied by B/base or its square root where the range is relative.
double value_in(const SearchRange& range, double unit, const RunOptions& options);

/// `tune.trials` points of one Halton sequence; its first coordinate is the first range, and so on. Whole
/// numbers are rounded.
std::vector<Candidate> sampled_candidates(const std::vector<SearchRange>& ranges, const TuneOptions& tune,
                                          const RunOptions& options);
/// One per rate, each once.
std::vector<Candidate> listed_candidates(const std::vector<double>& rates);

/// `trials` runs per group and seed with the run's budget divided by `divisor`.
struct Rung {
  int64_t trials = 0, divisor = 1;
};
/// Successive halving (K. Jamieson, A. Talwalkar, AISTATS 2016): of n trials the best n/eta go on to the next
/// rung, with eta times the budget; the last rung has the whole. As many rungs as leave eta trials in the
/// last, unless `tune.rungs` says fewer or more. Without halving one rung.
std::vector<Rung> rungs_of(const TuneOptions& tune, const std::string& where);
/// The run with its budget divided: epochs, updates or max_gradients, whichever its protocol goes by. The
/// schedule is laid over the shorter run.
void divide_budget(RunOptions& options, int64_t divisor);

}  // namespace basin
