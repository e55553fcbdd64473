#include "apps/study.h"
#include "apps/study_values.h"
#include "core/error.h"

namespace basin {
namespace {

bool holds(const Rule& rule, const OptionTable& table) {
  return std::all_of(rule.when.begin(), rule.when.end(), [&](const Condition& condition) {
    return contains(condition.values, table.at(condition.key).get());
  });
}

bool depends_on_rate(const Rule& rule) {
  return std::any_of(rule.when.begin(), rule.when.end(), [](const Condition& c) { return c.key == kRate; });
}

// One combination of the axes' values.
using Point = std::vector<std::pair<std::string, OptionValue>>;

void apply_point(RunOptions& options, const Point& point) {
  OptionTable table = options.table();
  for (const auto& [key, value] : point) table.set(key, value, "sweep");
}

// The learning rates that the last matching rule, the sweep or the base gives.
std::vector<double> rates_of(const Study& study, const Point& point) {
  std::vector<double> rates = study.learning_rates;
  if (rates.empty()) rates = {study.base.train.learning_rate};
  RunOptions options = study.base;
  apply_point(options, point);
  OptionTable table = options.table();
  for (const Rule& rule : study.set_rules) {
    if (depends_on_rate(rule) || !holds(rule, table)) continue;
    for (const TomlEntry& entry : rule.set) {
      if (entry.key == kRate)
        rates = checked_rates(entry.value, entry.where);
      else
        table.set(entry.key, entry.value, entry.where);
    }
  }
  return rates;
}

RunOptions resolve(const Study& study, const Point& point, double rate) {
  RunOptions options = study.base;
  apply_point(options, point);
  options.train.learning_rate = rate;
  OptionTable table = options.table();
  for (const Rule& rule : study.set_rules) {
    if (!holds(rule, table)) continue;
    for (const TomlEntry& entry : rule.set) {
      if (entry.key != kRate) table.set(entry.key, entry.value, entry.where);
    }
  }
  return options;
}

std::string plain(const OptionValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : to_toml(value);
}

std::string group_of(const Point& point) {
  std::string group;
  for (const auto& [key, value] : point) {
    if (key != "seed") group += (group.empty() ? "" : " ") + key + "=" + plain(value);
  }
  return group.empty() ? "all" : group;
}

std::string label_of(const RunOptions& options, const Point& point, bool tell_rate) {
  std::string label =
      fmt::format("{} B={} protocol {}", options.optimizer, options.train.batch_size, options.train.protocol);
  const std::set<std::string> told = {"optimizer", "batch_size", "protocol", "seed"};
  for (const auto& [key, value] : point) {
    if (!told.count(key)) label += " " + key + "=" + plain(value);
  }
  if (tell_rate) label += fmt::format(" rate {:g}", options.train.learning_rate);
  return label + fmt::format(" seed {}", options.train.seed);
}

Cell make_cell(const Study& study, const Point& point, double rate, bool tell_rate) {
  Cell cell{resolve(study, point, rate), "", "", group_of(point), 0};
  RunOptions& options = cell.options;
  check(options);
  if (study.selection.enabled && options.data.validation <= 0) {
    throw ConfigError(study.selection.where + ": sweep.select needs data.validation > 0");
  }
  const OptionTable table = options.table();
  for (const Rule& rule : study.expect_rules) {
    if (holds(rule, table))
      cell.expected_gradients = static_cast<double>(std::get<int64_t>(rule.set[0].value));
  }
  cell.run_id = options.run_id();
  cell.label = label_of(options, point, tell_rate);
  return cell;
}

bool skipped(const Study& study, Cell& cell) {
  const OptionTable table = cell.options.table();
  return std::any_of(study.skip_rules.begin(), study.skip_rules.end(),
                     [&](const Rule& rule) { return holds(rule, table); });
}

// Every combination of the axes, the first slowest; the axis `seed` replaced where seeds are given.
std::vector<Point> points_of(const Study& study, const std::vector<int64_t>* seeds = nullptr) {
  std::vector<Axis> axes = study.axes;
  if (seeds != nullptr) {
    axes.erase(std::remove_if(axes.begin(), axes.end(), [](const Axis& a) { return a.key == "seed"; }),
               axes.end());
    axes.push_back({"seed", {seeds->begin(), seeds->end()}, ""});
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

void add_once(std::vector<Cell>& cells, std::set<std::string>& seen, Cell cell) {
  if (seen.insert(cell.run_id).second) cells.push_back(std::move(cell));
}

}  // namespace

std::vector<Cell> expand(const Study& study, const ChosenRates& chosen) {
  std::vector<Cell> cells;
  std::set<std::string> seen;
  for (const Point& point : points_of(study)) {
    std::vector<double> rates = rates_of(study, point);
    const auto choice = chosen.find(group_of(point));
    if (choice != chosen.end()) rates = {choice->second};
    for (const double rate : rates) {
      Cell cell = make_cell(study, point, rate, rates.size() > 1);
      if (!skipped(study, cell)) add_once(cells, seen, std::move(cell));
    }
  }
  if (cells.empty()) throw ConfigError("the study has no runs: [[sweep.skip]] leaves none");
  return cells;
}

std::vector<Cell> expand_tuning(const Study& study) {
  if (!study.selection.enabled) return {};
  std::set<std::string> wanted;
  for (const Cell& cell : expand(study)) wanted.insert(cell.group);
  std::vector<Cell> cells;
  std::set<std::string> seen, tuned, listed;
  for (const Point& point : points_of(study, &study.selection.seeds)) {
    const std::vector<double> rates = rates_of(study, point);
    const std::string group = group_of(point);
    if (rates.size() < 2 || !wanted.count(group)) continue;
    listed.insert(group);
    for (const double rate : rates) {
      Cell cell = make_cell(study, point, rate, true);
      if (skipped(study, cell)) continue;
      tuned.insert(group);
      add_once(cells, seen, std::move(cell));
    }
  }
  const std::string& where = study.selection.where;
  if (listed.empty())
    throw ConfigError(where + ": sweep.select needs a list of learning rates to choose from");
  for (const std::string& group : listed) {
    if (!tuned.count(group)) throw ConfigError(where + ": every selection seed is skipped for " + group);
  }
  return cells;
}

}  // namespace basin
