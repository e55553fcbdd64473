#include "core/error.h"
#include "study/study.h"
#include "study/values.h"

namespace basin {
namespace {

bool hold(const std::vector<Condition>& conditions, const OptionView& table) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
    return contains(condition.values, table.at(condition.key).get());
  });
}

bool depends_on_rate(const Rule& rule) {
  return std::any_of(rule.when.begin(), rule.when.end(), [](const Condition& c) { return c.key == kRate; });
}

// One combination of the axes' values.
using Point = std::vector<std::pair<std::string, OptionValue>>;

void apply_point(OptionTable& table, const Point& point) {
  for (const auto& [key, value] : point) table.set(key, value, "sweep");
}

// The options at a point as far as they don't depend on the learning rate, and what that is said to be there:
// by the last matching rule, the sweep or the base.
struct PointOptions {
  RunOptions options;
  RateChoices rates;
};

PointOptions options_at(const Study& study, const Point& point) {
  PointOptions at{study.base, study.rates};
  if (at.rates.values.empty() && !at.rates.tuned) at.rates.values = {study.base.train.learning_rate};
  OptionTable table = at.options.table();
  apply_point(table, point);
  for (const Rule& rule : study.set_rules) {
    if (depends_on_rate(rule) || !hold(rule.when, table)) continue;
    for (const TomlEntry& entry : rule.set) {
      if (entry.key == kRate)
        at.rates = checked_rates(entry.value, entry.where);
      else
        table.set(entry.key, entry.value, entry.where);
    }
  }
  return at;
}

// `table`: of the study's base options.
void resolve(OptionTable& table, const Study& study, const Point& point, const Settings& settings) {
  apply_point(table, point);
  for (const auto& [key, value] : settings) table.set(key, value, study.tuning.where);
  for (const Rule& rule : study.set_rules) {
    if (!hold(rule.when, table)) continue;
    for (const TomlEntry& entry : rule.set) {
      if (entry.key != kRate) table.set(entry.key, entry.value, entry.where);
    }
  }
}

std::string plain(const OptionValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : to_toml(value);
}

std::string group_of(const Point& point) {
  std::string group;
  for (const auto& [key, value] : point) {
    if (key != repetition_key()) group += (group.empty() ? "" : " ") + key + "=" + plain(value);
  }
  return group.empty() ? "all" : group;
}

// What tells the group from others in any study.
Settings when_of(const OptionView& table, const Point& point) {
  Settings when;
  std::set<std::string> told;
  for (const auto& [key, value] : point) {
    if (key != repetition_key() && told.insert(key).second) when.emplace_back(key, value);
  }
  for (const char* key : {"model", "optimizer", "batch_size", "protocol"}) {
    if (told.insert(key).second) when.emplace_back(key, table.at(key).get());
  }
  return when;
}

// The ranges that hold, the learning rate's first: its coordinate is the same in every group.
std::vector<SearchRange> ranges_at(const Study& study, const RunOptions& options, const std::string& group) {
  const OptionView table = options.table();
  std::vector<SearchRange> ranges;
  for (const RangeRule& rule : study.tuning.ranges) {
    if (!hold(rule.when, table)) continue;
    const auto same = std::find_if(ranges.begin(), ranges.end(),
                                   [&](const SearchRange& range) { return range.key == rule.range.key; });
    if (same != ranges.end())
      *same = rule.range;
    else
      ranges.push_back(rule.range);
  }
  std::stable_partition(ranges.begin(), ranges.end(),
                        [](const SearchRange& range) { return range.key == kRate; });
  if (ranges.empty() || ranges.front().key != kRate)
    throw ConfigError(
        fmt::format("{}: no [[tune.range]] of learning_rate holds for {}", study.tuning.where, group));
  for (const SearchRange& range : ranges) check(range, options);
  return ranges;
}

Candidate selected_at(const Study& study, const RunOptions& options, const std::string& group) {
  const OptionView table = options.table();
  Candidate candidate;
  for (const Rule& winner : study.selected) {
    if (!hold(winner.when, table)) continue;
    if (!candidate.values.empty())
      throw ConfigError(
          fmt::format("{}: more than one choice holds for {}", winner.set.front().where, group));
    for (const TomlEntry& entry : winner.set)
      candidate.values.push_back({entry.key, entry.value, NAN, Edge::none});
  }
  if (candidate.values.empty())
    throw ConfigError(fmt::format("{}: no choice holds for {}", study.selected_from, group));
  return candidate;
}

std::vector<Candidate> candidates_at(const Study& study, const Point& point) {
  const PointOptions at = options_at(study, point);
  const std::string group = group_of(point);
  if (!at.rates.tuned) return listed_candidates(at.rates.values);
  if (!study.selected.empty()) return {selected_at(study, at.options, group)};
  return sampled_candidates(ranges_at(study, at.options, group), study.tuning.options, at.options);
}

// `tried`: values that are one of several, so that the label names them; `divisor` of the budget.
std::string label_of(const RunOptions& options, const Point& point, const Settings& tried, int64_t divisor) {
  std::string label =
      fmt::format("{} B={} protocol {}", options.optimizer, options.train.batch_size, options.train.protocol);
  const std::set<std::string> told = {"optimizer", "batch_size", "protocol", repetition_key()};
  for (const auto& [key, value] : point) {
    if (!told.count(key)) label += " " + key + "=" + plain(value);
  }
  for (const auto& [key, value] : tried) {
    label +=
        key == kRate ? fmt::format(" rate {:g}", std::get<double>(value)) : " " + key + "=" + plain(value);
  }
  if (divisor > 1) label += fmt::format(" 1/{} of the budget", divisor);
  return label + fmt::format(" seed {}", options.train.seed);
}

bool holds_any(const std::vector<Rule>& rules, const OptionView& table) {
  return std::any_of(rules.begin(), rules.end(), [&](const Rule& rule) { return hold(rule.when, table); });
}

// Nothing where the study skips it.
std::optional<Cell> make_cell(const Study& study, const Point& point, const Settings& settings, bool tell,
                              int64_t divisor = 1) {
  std::optional<Cell> cell(std::in_place);
  RunOptions& options = cell->options;
  options = study.base;
  OptionTable table = options.table();  // built once: it costs more than all the rest
  resolve(table, study, point, settings);
  divide_budget(options, divisor);
  check(options);
  if (study.tuning.enabled && options.data.validation <= 0) {
    throw ConfigError(fmt::format("{}: {} needs data.validation > 0", study.tuning.where,
                                  study.tuning.sampled ? "[tune]" : "sweep.select"));
  }
  if (holds_any(study.skip_rules, table)) return std::nullopt;
  for (const Rule& rule : study.expect_rules) {
    if (hold(rule.when, table))
      cell->expected_gradients =
          static_cast<double>(std::get<int64_t>(rule.set[0].value)) / static_cast<double>(divisor);
  }
  cell->run_id = options.run_id();
  cell->group = group_of(point);
  cell->when = when_of(table, point);
  cell->label = label_of(options, point, tell ? settings : Settings{}, divisor);
  return cell;
}

// Every combination of the axes, the first slowest; the axis `seed` replaced where seeds are given.
std::vector<Point> points_of(const Study& study, const std::vector<int64_t>* seeds = nullptr) {
  std::vector<Axis> axes = study.axes;
  if (seeds != nullptr) {
    std::erase_if(axes, [](const Axis& axis) { return axis.key == repetition_key(); });
    axes.push_back({repetition_key(), {seeds->begin(), seeds->end()}, ""});
  }
  std::vector<Point> points = {{}};
  for (const Axis& axis : axes) {
    std::vector<Point> longer;
    for (const Point& point : points) {
      for (const OptionValue& value : axis.values) {
        longer.push_back(point);
        longer.back().emplace_back(axis.key, value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

// Those that have a run which isn't skipped.
std::set<std::string> groups_with_cells(const Study& study) {
  std::set<std::string> groups;
  for (const Point& point : points_of(study)) {
    if (groups.count(group_of(point))) continue;
    for (const Candidate& candidate : candidates_at(study, point)) {
      if (!make_cell(study, point, candidate.settings(), false)) continue;
      groups.insert(group_of(point));
      break;
    }
  }
  return groups;
}

bool entered(const Candidate& candidate, const std::string& group, size_t rung, const Entrants& entrants) {
  if (rung == 0) return true;
  const auto in_rung = entrants.find(group);
  return in_rung != entrants.end() && in_rung->second.count(candidate.trial);
}

}  // namespace

std::vector<Rung> TuningPlan::rungs() const {
  return sampled ? rungs_of(options, where) : std::vector<Rung>{{0, 1}};
}

std::vector<Cell> distinct_runs(const std::vector<Cell>& cells) {
  std::vector<Cell> distinct;
  std::set<std::string> seen;
  for (const Cell& cell : cells) {
    if (seen.insert(cell.run_id).second) distinct.push_back(cell);
  }
  return distinct;
}

std::vector<Cell> expand(const Study& study, const Winners& winners) {
  std::vector<Cell> cells;
  std::set<std::string> seen;
  const auto add = [&](std::optional<Cell> cell) {
    if (cell && seen.insert(cell->run_id).second) cells.push_back(std::move(*cell));
  };
  for (const Point& point : points_of(study)) {
    const auto winner = winners.find(group_of(point));
    if (winner != winners.end()) {
      add(make_cell(study, point, winner->second, false));
      continue;
    }
    const std::vector<Candidate> candidates = candidates_at(study, point);
    for (const Candidate& candidate : candidates) {
      std::optional<Cell> cell = make_cell(study, point, candidate.settings(), candidates.size() > 1);
      if (cell && candidates.size() > 1) cell->candidate = candidate;
      add(std::move(cell));
    }
  }
  if (cells.empty()) throw ConfigError("the study has no runs: [[sweep.skip]] leaves none");
  return cells;
}

std::vector<Cell> expand_tuning(const Study& study, size_t rung, const Entrants& entrants) {
  const TuningPlan& tuning = study.tuning;
  if (!tuning.enabled) return {};
  const int64_t divisor = tuning.rungs().at(rung).divisor;
  const std::set<std::string> wanted = groups_with_cells(study);
  std::vector<Cell> cells;
  std::set<std::string> tuned, to_tune;
  for (const Point& point : points_of(study, &tuning.options.seeds)) {
    const std::string group = group_of(point);
    if (!wanted.count(group)) continue;
    const std::vector<Candidate> candidates = candidates_at(study, point);
    if (candidates.size() < 2) continue;
    to_tune.insert(group);
    for (const Candidate& candidate : candidates) {
      if (!entered(candidate, group, rung, entrants)) continue;
      std::optional<Cell> cell = make_cell(study, point, candidate.settings(), true, divisor);
      if (!cell) continue;
      tuned.insert(group);
      cell->candidate = candidate;
      cell->rung = rung;
      cells.push_back(std::move(*cell));
    }
  }
  if (to_tune.empty() && !tuning.sampled)
    throw ConfigError(tuning.where + ": sweep.select needs a list of learning rates to choose from");
  for (const std::string& group : to_tune) {
    if (!tuned.count(group))
      throw ConfigError(tuning.where + ": every seed of the tuning is skipped for " + group);
  }
  return cells;
}

std::string fairness_warning(const std::vector<Cell>& cells) {
  std::set<std::string> optimizers, rules;
  std::set<int64_t> batch_sizes;
  std::set<double> rates;
  for (const Cell& cell : cells) {
    optimizers.insert(cell.options.optimizer);
    batch_sizes.insert(cell.options.train.batch_size);
    rates.insert(cell.options.train.learning_rate);
    rules.insert(cell.options.schedule.scaling_rule);
  }
  if (optimizers.size() < 2 && batch_sizes.size() < 2) return "";
  if (rates.size() > 1 || rules != std::set<std::string>{"none"}) return "";
  return fmt::format(
      "the learning rate is the same for all, {:g}, and no scaling rule is named: an unfair comparison of {} "
      "optimiser(s) at {} batch size(s); learning_rate = \"tuned\" with [tune] searches one for each",
      *rates.begin(), optimizers.size(), batch_sizes.size());
}

}  // namespace basin
