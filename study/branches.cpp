#include "study/branches.h"

#include <cctype>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "io/checkpoint.h"
#include "study/tuning_reader.h"
#include "trainers/check_rule.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBranch = "branch";

bool is_condition(const std::string& from) { return from.find('=') != std::string::npos; }

bool is_run_id(const std::string& from) {
  return from.size() == 12 && from.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// A checkpoint outside of the study.
struct ParentFile {
  std::string sha256, label, config_id;
};

// Read once while it stays as it is: a study is expanded several times, and many cells may branch from one file.
const ParentFile& parent_file(const std::string& path) {
  static std::map<std::string, ParentFile> known;
  std::error_code missing;
  const auto size = fs::file_size(path, missing);
  if (missing) throw IoError(path + ": missing: branch.from names no run of a study and no checkpoint");
  const std::string key =
      fmt::format("{}\n{}\n{}", path, size, fs::last_write_time(path).time_since_epoch().count());
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const Checkpoint checkpoint = read_checkpoint(path);
  return known[key] = {sha256_of_file(path), checkpoint.label, checkpoint.config_id};
}

void resolve_path(BranchOptions& branch) {
  std::string path = branch.from;
  if (fs::is_directory(path)) {
    if (branch.at.empty())
      throw ConfigError(fmt::format(
          "branch.from = \"{}\" is a folder: branch.at has to name a checkpoint in it", branch.from));
    path += "/ckpt/" + branch.at + ".h5";
  }
  const ParentFile& file = parent_file(path);
  if (branch.at.empty()) branch.at = file.label;
  if (branch.at != file.label)
    throw ConfigError(
        fmt::format("branch.at = \"{}\", but {} is the checkpoint \"{}\"", branch.at, path, file.label));
  branch.path = path;
  branch.from = "sha256:" + file.sha256;
  branch.setting = file.config_id;
}

std::vector<Condition> conditions_of(const Cell& cell) {
  const std::string& from = cell.options.train.branch.from;
  const std::string where = cell.label + ": branch.from";
  std::vector<Condition> conditions;
  for (const TomlEntry& entry : parse_toml("when = { " + from + " }\n", where).entries) {
    const std::string key = key_below(entry.key, "when");
    conditions.push_back({key, checked_values(key, entry.value, where), where});
  }
  return conditions;
}

bool is_of_branch(const std::string& key) { return !key_below(key, kBranch).empty(); }

/// Finds parents among the cells, all of them as the study has them.
class Family {
 public:
  Family(const std::vector<Cell>& cells, const Study& study) : cells_(cells), study_(study) {
    for (const Cell& cell : cells) tables_.push_back(cell.options.table());
  }

  size_t parent_of(size_t child) const {
    const std::vector<Condition> conditions = conditions_of(cells_[child]);
    std::vector<size_t> matches;
    for (size_t i = 0; i < cells_.size(); ++i)
      if (is_parent(i, child, conditions)) matches.push_back(i);
    if (matches.size() > 1) matches = same_rate(matches, child);
    if (matches.size() == 1) return matches[0];
    const Cell& cell = cells_[child];
    std::string text =
        fmt::format("{}: branch.from = {} names {} runs with seed {}", cell.label,
                    to_toml(OptionValue(cell.options.train.branch.from)),
                    matches.empty() ? "no" : std::to_string(matches.size()), cell.options.train.seed);
    for (size_t k = 0; k < matches.size(); ++k) text += (k == 0 ? ": " : "; ") + cells_[matches[k]].label;
    throw ConfigError(text);
  }

 private:
  bool is_parent(size_t i, size_t child, const std::vector<Condition>& conditions) const {
    if (cells_[i].options.train.seed != cells_[child].options.train.seed) return false;
    std::set<std::string> said;
    bool of_branch = false;
    for (const Condition& condition : conditions) {
      if (!contains(condition.values, tables_[i].at(condition.key).get())) return false;
      said.insert(condition.key);
      of_branch = of_branch || is_of_branch(condition.key);
    }
    if (!of_branch && cells_[i].options.train.branch.exists()) return false;
    return std::all_of(study_.axes.begin(), study_.axes.end(), [&](const Axis& axis) {
      if (said.count(axis.key) || is_of_branch(axis.key)) return true;
      return tables_[i].at(axis.key).get() == tables_[child].at(axis.key).get();
    });
  }

  // Candidates of one group: the one with the branch's rate. Before a tuning has chosen, any of them stands for the choice.
  std::vector<size_t> same_rate(const std::vector<size_t>& matches, size_t child) const {
    const auto one_group = [&](size_t i) { return cells_[i].group == cells_[matches[0]].group; };
    if (!std::all_of(matches.begin(), matches.end(), one_group)) return matches;
    std::vector<size_t> same;
    for (const size_t i : matches)
      if (cells_[i].options.train.learning_rate == cells_[child].options.train.learning_rate)
        same.push_back(i);
    if (same.size() == 1) return same;
    return study_.tuning.enabled ? std::vector<size_t>{matches[0]} : matches;
  }

  const std::vector<Cell>& cells_;
  const Study& study_;
  std::vector<OptionView> tables_;
};

// "u000400": 400; 0 for other labels.
int64_t update_of(const std::string& label) {
  if (label.size() < 2 || label[0] != 'u') return 0;
  const std::string digits = label.substr(1);
  if (digits.size() > 15 || digits.find_first_not_of("0123456789") != std::string::npos) return 0;
  const int64_t update = std::stoll(digits);
  return fmt::format("u{:06d}", update) == label ? update : 0;
}

bool keeps(const TrainOptions& parent, const std::string& label) {
  if (label == "start" || label == "end") return true;
  const std::vector<std::string> of_hooks = parent.hooks.cost().checkpoints;
  if (contains(of_hooks, label)) return true;
  if (const int64_t update = update_of(label); update > 0) {
    const bool in_time =
        !parent.ends_by(Protocol::updates) || parent.branch.exists() || update <= parent.updates;
    return in_time && parent.checkpoint_every > 0 && update % parent.checkpoint_every == 0;
  }
  return std::any_of(parent.loss_levels.begin(), parent.loss_levels.end(),
                     [&](double level) { return CheckRule::level_label(level) == label; });
}

std::string kept_by(const TrainOptions& parent) {
  std::vector<std::string> labels = {"start", "end"};
  if (parent.checkpoint_every > 0) labels.push_back(fmt::format("every {}. update", parent.checkpoint_every));
  for (const double level : parent.loss_levels) labels.push_back(CheckRule::level_label(level));
  return fmt::format("{}", fmt::join(labels, ", "));
}

void require_fit(const Cell& child, const Cell& parent) {
  const RunOptions &ours = child.options, &theirs = parent.options;
  const BranchOptions& branch = ours.train.branch;
  const auto differ = [&](const std::string& what, const std::string& there, const std::string& here) {
    throw ConfigError(fmt::format("{}: its parent {} has another {}: {} there, {} here", child.label,
                                  parent.label, what, there, here));
  };
  if (branch.at.empty())
    throw ConfigError(child.label + ": branch.from needs branch.at, the parent's checkpoint");
  if (!keeps(theirs.train, branch.at))
    throw ConfigError(fmt::format("{}: its parent {} keeps no checkpoint branch.at = \"{}\"; it keeps: {}",
                                  child.label, parent.label, branch.at, kept_by(theirs.train)));
  if (theirs.model != ours.model) differ("network", theirs.model, ours.model);
  if (theirs.data.set != ours.data.set) differ("data set", theirs.data.set, ours.data.set);
  if (theirs.train.dtype != ours.train.dtype) differ("dtype", theirs.train.dtype, ours.train.dtype);
  if (branch.optimizer != "reset" && theirs.optimizer != ours.optimizer)
    throw ConfigError(
        fmt::format("{}: its parent {} has another optimiser: branch.optimizer = \"{}\" must be \"reset\"",
                    child.label, parent.label, branch.optimizer));
}

/// Gives every branch its parent's name, the parent's first.
class Names {
 public:
  Names(std::vector<Cell>& cells, const Study& study)
      : cells_(cells), states_(cells.size(), State::untouched) {
    const bool any = std::any_of(cells.begin(), cells.end(), [](const Cell& cell) {
      return is_condition(cell.options.train.branch.from);
    });
    parents_.resize(cells.size());
    if (!any) return;
    const Family family(cells, study);
    for (size_t i = 0; i < cells.size(); ++i)
      if (is_condition(cells[i].options.train.branch.from)) parents_[i] = family.parent_of(i);
  }

  void give() {
    for (size_t i = 0; i < cells_.size(); ++i) name(i);
  }

 private:
  enum class State { untouched, being_named, named };

  void name(size_t i) {
    if (states_[i] == State::named) return;
    if (states_[i] == State::being_named) refuse_circle(i);
    states_[i] = State::being_named;
    Cell& cell = cells_[i];
    BranchOptions& branch = cell.options.train.branch;
    if (!branch.exists()) {
      states_[i] = State::named;
      return;
    }
    if (parents_[i]) {
      name(*parents_[i]);
      const Cell& parent = cells_[*parents_[i]];
      require_fit(cell, parent);
      branch.setting = parent.options.config_id();
      branch.from = parent.run_id;
      cell.parents = {parent.run_id};
    } else if (is_run_id(branch.from)) {
      cell.parents = {branch.from};
    } else if (branch.from.rfind("sha256:", 0) != 0) {
      resolve_path(branch);
    }
    // Resolved options say what the run does: a branch by a factor is the same run as one by its rate.
    cell.options.train.learning_rate *= std::exchange(branch.rate_factor, 1.0);
    cell.run_id = cell.options.run_id();
    states_[i] = State::named;
  }

  [[noreturn]] void refuse_circle(size_t i) const {
    std::string circle = cells_[i].label;
    size_t next = *parents_[i];
    if (next == i) throw ConfigError(circle + ": branch.from names this run itself");
    for (; next != i; next = *parents_[next]) circle += ", which branches from " + cells_[next].label;
    throw ConfigError(fmt::format("branch.from goes in a circle: {}, which branches from the first", circle));
  }

  std::vector<Cell>& cells_;
  std::vector<State> states_;
  std::vector<std::optional<size_t>> parents_;
};

// A run without a parent, whatever is swept of [branch] besides.
void forget_other_keys(std::vector<Cell>& cells) {
  for (Cell& cell : cells) {
    BranchOptions& branch = cell.options.train.branch;
    if (branch.exists() || branch == BranchOptions{}) continue;
    branch = {};
    cell.run_id = cell.options.run_id();
  }
  cells = distinct_runs(cells);
}

}  // namespace

void resolve_branches(std::vector<Cell>& cells, const Study& study) {
  const auto is_branch = [](const Cell& cell) { return cell.options.train.branch.exists(); };
  if (!(study.base.train.branch == BranchOptions{}) && std::none_of(cells.begin(), cells.end(), is_branch))
    throw ConfigError("[branch] needs branch.from, the parent: without it no run of the study is a branch");
  forget_other_keys(cells);
  Names(cells, study).give();
  cells = distinct_runs(cells);
}

}  // namespace basin
