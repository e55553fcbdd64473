// defines: Study, a study file with its grid, rules and tuning; Cell; expand() and expand_tuning().
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "study/candidates.h"
#include "study/contrast.h"
#include "study/run_options.h"
#include "study/values.h"

namespace basin {

/// One option and the values it takes in turn.
struct Axis {
  std::string key;
  std::vector<OptionValue> values;
  std::string where;
  bool of_arms = false;  // swept by [[sweep.arm]] alone: the value is that of all other settings
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

/// Each setting of the grid for which all conditions hold is run once more for every combination of these values.
struct ArmRule {
  std::vector<Condition> when;
  std::vector<Axis> set;
  std::string where;
};

/// A range holds where its conditions do; later ones win over earlier ones of the same key.
struct RangeRule {
  std::vector<Condition> when;
  SearchRange range;
};

/// How the values that the runs are made with are chosen by tuning runs: from lists of learning rates
/// (`select`) or from ranges ([tune]); docs/study.md.
struct TuningPlan {
  bool enabled = false;
  bool sampled = false;  // from ranges; else from lists
  TuneOptions options;   // of lists the seeds alone
  std::vector<RangeRule> ranges;
  std::string where;

  std::vector<Rung> rungs() const;  // of lists: one, of all that they hold
};

/// A study file (docs/study.md) as read: base options, axes of the grid, rules. Every message names file and
/// line.
struct Study {
  std::string text;  // with --set and a selection written at its end: read again, it gives the same cells
  RunOptions base;
  std::vector<Axis> axes;  // in file order; learning_rate is no axis but the choices below
  RateChoices rates;       // by default the base's rate
  std::vector<Rule> set_rules, skip_rules, expect_rules;
  std::vector<ArmRule> arms;
  TuningPlan tuning;
  std::vector<Rule> selected;  // the winners of an earlier tuning; where there are any, nothing is tuned
  std::string selected_from;   // their file
  std::vector<Contrast> contrasts;
  std::vector<Hypothesis> hypotheses;
  int64_t registered_seeds = 0;  // how many; 0: the seeds are the study's own
};

/// `sets` are "key=value" from the command line: an axis or a range is replaced by the value or list, any
/// other key is set after all rules. `selection`: a selection.toml whose winners are taken, as by
/// `sweep.selection`. Throws ConfigError for unknown keys, wrong types, values out of range and rules that
/// can never hold.
Study parse_study(const std::string& text, const std::string& file_name, const std::vector<std::string>& sets,
                  const std::string& selection = "");
Study read_study(const std::string& path, const std::vector<std::string>& sets,
                 const std::string& selection = "");

/// One run to be done, fully resolved.
struct Cell {
  RunOptions options;
  std::string run_id;
  std::string label;  // "lamb B=2048 protocol B seed 1"
  std::string group;  // the axes' values but for seed and learning rate: what is tuned together
  Settings when;  // the group's axes, and model, optimizer, batch_size and protocol: what a selection goes by
  Settings
      arms;  // what tells its setting from others with its optimiser, batch size and protocol (study/arms.h)
  double expected_gradients = 0;  // by [[sweep.expect]]; 0: not said
  Candidate candidate;            // of a tuning run, or where the choice is not made yet
  size_t rung = 0;                // of a tuning run
  std::vector<std::string> parents =
      {};  // run_ids of this study's runs that have to end before this one begins
};

/// Chosen values by group.
using Winners = std::map<std::string, Settings>;
/// Numbers of the trials that are in a rung, by group.
using Entrants = std::map<std::string, std::set<int64_t>>;

/// All cells in grid order, the first axis slowest, then those of the arms, without those skipped, each run_id once. A group with
/// several candidates has a cell for each, or for the chosen one where `winners` knows the group.
std::vector<Cell> expand(const Study& study, const Winners& winners = {});

/// The tuning runs of a rung: for each group that has cells and more than one candidate, each that entered
/// (all of them in the first rung) at each seed of the tuning. Two trials that round to the same values are
/// one run and two cells.
std::vector<Cell> expand_tuning(const Study& study, size_t rung = 0, const Entrants& entrants = {});

/// Each run once.
std::vector<Cell> distinct_runs(const std::vector<Cell>& cells);

/// A line for each optimiser that has one learning rate at several batch sizes and no scaling rule, and one where all
/// optimisers share a rate: not a fair comparison.
std::vector<std::string> fairness_warnings(const std::vector<Cell>& cells);

}  // namespace basin
