// defines: Study, a study file with its grid and rules; Cell; expand().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/run_options.h"

namespace basin {

/// One option and the values it takes in turn.
struct Axis {
  std::string key;
  std::vector<OptionValue> values;
  std::string where;
};

/// Holds where the option has one of the values.
struct Condition {
  std::string key;
  std::vector<OptionValue> values;
  std::string where;
};

/// Holds where all its conditions do; later rules win over earlier ones.
struct Rule {
  std::vector<Condition> when;
  std::vector<TomlEntry> set;
  std::string where;
};

/// Learning rates chosen from a list by tuning runs; docs/study.md.
struct SelectionPlan {
  bool enabled = false;
  std::vector<int64_t> seeds;
  std::string where;
};

/// A study file (docs/study.md) as read: base options, axes of the grid, rules. Every message names file and
/// line.
struct Study {
  std::string text;  // with --set written as [[sweep.override]]: read again, it gives the same cells
  RunOptions base;
  std::vector<Axis> axes;  // in file order; learning_rate is no axis but the list below
  std::vector<double> learning_rates;
  std::vector<Rule> set_rules, skip_rules, expect_rules;
  SelectionPlan selection;
};

/// `sets` are "key=value" from the command line: an axis is replaced by the value or list, any other key is
/// set after all rules. Throws ConfigError for unknown keys, wrong types, values out of range and rules that
/// can never hold.
Study parse_study(const std::string& text, const std::string& file_name,
                  const std::vector<std::string>& sets);
Study read_study(const std::string& path, const std::vector<std::string>& sets);

/// One run to be done, fully resolved.
struct Cell {
  RunOptions options;
  std::string run_id;
  std::string label;  // "lamb B=2048 protocol B seed 1"
  std::string group;  // the axes' values but for seed and learning rate: what a learning rate is chosen for
  double expected_gradients = 0;  // by [[sweep.expect]]; 0: not said
};

/// By group.
using ChosenRates = std::map<std::string, double>;

/// All cells in grid order, the first axis slowest, without those skipped, each run_id once. A group with
/// several learning rates has a cell for each, or for the chosen one where `chosen` knows the group.
std::vector<Cell> expand(const Study& study, const ChosenRates& chosen = {});

/// The runs that choose: for each group that has cells and more than one learning rate, each rate at the
/// selection seeds.
std::vector<Cell> expand_tuning(const Study& study);

}  // namespace basin
