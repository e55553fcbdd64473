#include "core/error.h"
#include "core/nearest.h"
#include "models/registry.h"
#include "optim/registry.h"
#include "study/arms.h"
#include "study/branches.h"
#include "study/recorded_orders.h"
#include "study/study.h"
#include "study/trust_ratios.h"
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

struct Coordinate {
  std::string key;
  OptionValue value;
  bool plain;  // of an option that is swept by arms alone: as in every setting but those arms
};

// One combination of the axes' values.
using Point = std::vector<Coordinate>;

void apply_point(OptionTable& table, const Point& point) {
  for (const Coordinate& at : point) table.set(at.key, at.value, "sweep");
}

// The options at a point as far as they don't depend on the learning rate, and what that is said to be there:
// by the last matching rule, the sweep or the base.
struct PointOptions {
  RunOptions options;
  RateChoices rates;
};

RateChoices rates_of(const Study& study) {
  RateChoices rates = study.rates;
  if (rates.values.empty() && !rates.tuned) rates.values = {study.base.train.learning_rate};
  return rates;
}

PointOptions options_at(const Study& study, const Point& point) {
  PointOptions at{study.base, rates_of(study)};
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

std::string group_of(const Point& point) {
  std::string group;
  for (const auto& [key, value, plain] : point) {
    if (key != repetition_key() && !plain)
      group += (group.empty() ? "" : " ") + key + "=" + plain_text(value);
  }
  return group.empty() ? "all" : group;
}

// What tells the group from others in any study.
Settings when_of(const OptionView& table, const Point& point) {
  Settings when;
  std::set<std::string> told;
  for (const auto& [key, value, plain] : point) {
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

bool sets_rate(const Rule& rule) {
  return std::any_of(rule.set.begin(), rule.set.end(),
                     [](const TomlEntry& entry) { return entry.key == kRate; });
}

std::vector<Candidate> candidates_at(const Study& study, const Point& point) {
  // The same everywhere: a table of options for each point would double the cost of a large grid.
  if (const RateChoices rates = rates_of(study);
      !rates.tuned && std::none_of(study.set_rules.begin(), study.set_rules.end(), sets_rate))
    return listed_candidates(rates.values);
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
  for (const auto& [key, value, plain] : point) {
    if (plain || told.count(key) || (key.rfind("branch.", 0) == 0 && !options.train.branch.exists()))
      continue;
    label += key == "branch.from" ? " from (" + plain_text(value) + ")" : " " + key + "=" + plain_text(value);
  }
  for (const auto& [key, value] : tried) {
    label += key == kRate ? fmt::format(" rate {:g}", std::get<double>(value))
                          : " " + key + "=" + plain_text(value);
  }
  if (divisor > 1) label += fmt::format(" 1/{} of the budget", divisor);
  return label + fmt::format(" seed {}", options.train.seed);
}

// Whether the option is one of the run: not of another model's or optimiser's table.
bool is_of_run(const std::string& key, const RunOptions& options) {
  const std::string table = key.substr(0, key.find('.'));
  return (table == options.model || !contains(names_of(model_registry()), table)) &&
         (table == options.optimizer || !contains(names_of(optimizer_registry()), table));
}

// What may tell the setting from others: the study's axes and what its rules set, but for what is searched.
Settings arm_candidates(const Study& study, const RunOptions& options, const OptionView& table,
                        const Settings& searched) {
  Settings found;
  std::set<std::string> seen = {kRate, repetition_key()};
  for (const auto& [key, value] : searched) seen.insert(key);
  const auto take = [&](const std::string& key) {
    if (!seen.insert(key).second || !table.at(key).traits.may_be_swept() || !is_of_run(key, options)) return;
    found.emplace_back(key, table.at(key).get());
  };
  for (const char* key : {"optimizer", "batch_size", "protocol"}) take(key);
  for (const Axis& axis : study.axes) take(axis.key);
  for (const Rule& rule : study.set_rules)
    for (const TomlEntry& entry : rule.set) take(entry.key);
  return found;
}

// Leaves of the candidates what does tell settings apart, and names in the labels what no axis does.
void name_arms(const Study& study, std::vector<Cell>& cells) {
  std::vector<Settings> settings;
  std::vector<std::string> axes;
  for (const Cell& cell : cells) settings.push_back(cell.arms);
  for (const Axis& axis : study.axes) axes.push_back(axis.key);
  const std::vector<std::string> keys = distinguishing_keys(settings, axes);
  for (Cell& cell : cells) {
    std::string told;
    std::erase_if(cell.arms, [&](const auto& arm) { return !contains(keys, arm.first); });
    for (const auto& [key, value] : cell.arms)
      if (!contains(axes, key)) told += " " + key + "=" + plain_text(value);
    cell.label.insert(cell.label.rfind(" seed "), told);
  }
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
  take_trust_ratios(options, table);
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
  cell->arms = arm_candidates(study, options, table, settings);
  cell->label = label_of(options, point, tell ? settings : Settings{}, divisor);
  return cell;
}

// Every combination of the axes, the first slowest; the axis `seed` replaced where seeds are given.
std::vector<Point> grid_of(const Study& study, const std::vector<int64_t>* seeds = nullptr) {
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
        longer.back().push_back({axis.key, value, axis.of_arms});
      }
    }
    points = std::move(longer);
  }
  return points;
}

// The setting with every combination of the arm's values in place of its own.
std::vector<Point> arms_at(const Point& setting, const ArmRule& arm) {
  std::vector<Point> points = {setting};
  for (const Axis& changed : arm.set) {
    std::vector<Point> more;
    for (const Point& point : points) {
      for (const OptionValue& value : changed.values) {
        more.push_back(point);
        for (Coordinate& at : more.back())
          if (at.key == changed.key) at = {changed.key, value, false};
      }
    }
    points = std::move(more);
  }
  return points;
}

// The grid, then what the arms add to it.
std::vector<Point> points_of(const Study& study, const std::vector<int64_t>* seeds = nullptr) {
  const std::vector<Point> grid = grid_of(study, seeds);
  if (study.arms.empty()) return grid;
  std::vector<std::vector<Point>> added(study.arms.size());
  for (const Point& point : grid) {
    RunOptions options = study.base;
    OptionTable table = options.table();  // built once for all arms: it costs more than all the rest
    resolve(table, study, point, {});
    if (holds_any(study.skip_rules, table)) continue;
    for (size_t i = 0; i < study.arms.size(); ++i) {
      if (!hold(study.arms[i].when, table)) continue;
      const std::vector<Point> arms = arms_at(point, study.arms[i]);
      added[i].insert(added[i].end(), arms.begin(), arms.end());
    }
  }
  std::vector<Point> points = grid;
  for (const std::vector<Point>& arms : added) points.insert(points.end(), arms.begin(), arms.end());
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

std::vector<std::unique_ptr<RunLink>> run_links() {
  std::vector<std::unique_ptr<RunLink>> links;
  links.push_back(branch_link());
  links.push_back(trust_link());
  links.push_back(order_link());
  return links;
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
  check_branches(cells, study);
  resolve_needed_runs(cells, study, run_links());
  name_arms(study, cells);
  return cells;
}

namespace {

void require_no_link(const Cell& cell, const std::vector<std::unique_ptr<RunLink>>& links,
                     const std::string& where) {
  for (const auto& link : links) {
    if (link->text(cell.options).empty()) continue;
    const std::string instead = link->instead();
    throw ConfigError(fmt::format(
        "{}: {} {} another run, and such runs aren't tuned: give it a learning_rate in [[sweep.set]]{}",
        where, cell.label, link->verb(), instead.empty() ? "" : ", " + instead));
  }
}

}  // namespace

std::vector<Cell> expand_tuning(const Study& study, size_t rung, const Entrants& entrants) {
  const TuningPlan& tuning = study.tuning;
  if (!tuning.enabled) return {};
  const int64_t divisor = tuning.rungs().at(rung).divisor;
  const std::set<std::string> wanted = groups_with_cells(study);
  std::vector<Cell> cells;
  std::set<std::string> tuned, to_tune;
  const std::vector<std::unique_ptr<RunLink>> links = run_links();
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
      require_no_link(*cell, links, tuning.where);
      if (tuning.options.select == kByGradients && !cell->options.train.ends_by(Protocol::matched_loss))
        throw ConfigError(fmt::format("{}: select = \"gradients\" needs protocol = \"B\": {} has no target",
                                      tuning.where, group));
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
  name_arms(study, cells);
  return cells;
}

std::vector<std::string> fairness_warnings(const std::vector<Cell>& cells) {
  struct Compared {
    std::set<int64_t> batch_sizes;
    std::set<double> rates;
    std::set<std::string> rules;
    bool one_rate() const { return rates.size() == 1 && rules == std::set<std::string>{"none"}; }
  };
  std::map<std::string, Compared> by_optimizer;
  Compared all;
  for (const Cell& cell : cells) {
    for (Compared* compared : {&all, &by_optimizer[cell.options.optimizer]}) {
      compared->batch_sizes.insert(cell.options.train.batch_size);
      compared->rates.insert(cell.options.train.learning_rate);
      compared->rules.insert(cell.options.schedule.scaling_rule);
    }
  }
  std::vector<std::string> warnings;
  const std::string remedy =
      "an unfair comparison; learning_rate = \"tuned\" with [tune] searches one for each";
  for (const auto& [optimizer, compared] : by_optimizer) {
    if (compared.batch_sizes.size() > 1 && compared.one_rate())
      warnings.push_back(
          fmt::format("{} has the same learning rate, {:g}, at {} batch sizes and no scaling rule: {}",
                      optimizer, *compared.rates.begin(), compared.batch_sizes.size(), remedy));
  }
  if (by_optimizer.size() > 1 && all.one_rate())
    warnings.push_back(fmt::format(
        "the learning rate is the same for all {} optimisers, {:g}, and no scaling rule is named: {}",
        by_optimizer.size(), *all.rates.begin(), remedy));
  return warnings;
}

}  // namespace basin
