#include "study/needed_runs.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/nearest.h"
#include "study/tuning_reader.h"

namespace basin {
namespace {

using Links = std::vector<std::unique_ptr<RunLink>>;

std::vector<Condition> conditions_of(const Cell& cell, const RunLink& link) {
  const std::string where = cell.label + ": " + link.key(cell.options);
  std::vector<Condition> conditions;
  const std::string text = "when = { " + link.text(cell.options) + " }\n";
  for (const TomlEntry& entry : parse_toml(text, where).entries) {
    const std::string key = key_below(entry.key, "when");
    conditions.push_back({key, checked_values(key, entry.value, where), where});
  }
  return conditions;
}

/// Finds named runs among the cells, all of them as the study has them.
class Family {
 public:
  Family(const std::vector<Cell>& cells, const Study& study) : cells_(cells), study_(study) {
    for (const Cell& cell : cells) tables_.push_back(cell.options.table());
  }

  size_t named_by(size_t child, const RunLink& link) const {
    const std::vector<Condition> conditions = conditions_of(cells_[child], link);
    std::vector<size_t> matches;
    for (size_t i = 0; i < cells_.size(); ++i)
      if (is_named(i, child, link, conditions)) matches.push_back(i);
    if (matches.size() > 1) matches = same_rate(matches, child);
    if (matches.size() == 1) return matches[0];
    const Cell& cell = cells_[child];
    std::string text =
        fmt::format("{}: {} = {} names {} runs with seed {}", cell.label, link.key(cell.options),
                    to_toml(OptionValue(link.text(cell.options))),
                    matches.empty() ? "no" : std::to_string(matches.size()), cell.options.train.seed);
    for (size_t k = 0; k < matches.size(); ++k) text += (k == 0 ? ": " : "; ") + cells_[matches[k]].label;
    throw ConfigError(text);
  }

 private:
  bool is_named(size_t i, size_t child, const RunLink& link, const std::vector<Condition>& conditions) const {
    if (cells_[i].options.train.seed != cells_[child].options.train.seed) return false;
    std::set<std::string> said;
    bool of_link = false;
    for (const Condition& condition : conditions) {
      if (!contains(condition.values, tables_[i].at(condition.key).get())) return false;
      said.insert(condition.key);
      of_link = of_link || link.owns(condition.key);
    }
    if (!of_link && !link.text(cells_[i].options).empty()) return false;
    return std::all_of(study_.axes.begin(), study_.axes.end(), [&](const Axis& axis) {
      if (said.count(axis.key) || link.owns(axis.key)) return true;
      return tables_[i].at(axis.key).get() == tables_[child].at(axis.key).get();
    });
  }

  // Candidates of one group: the one with the run's own rate. Before a tuning has chosen, any of them stands for the choice.
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

/// Gives every cell that needs another its name, the needed one's first.
class Names {
 public:
  Names(std::vector<Cell>& cells, const Study& study, const Links& links)
      : cells_(cells), links_(links), states_(cells.size(), State::untouched), named_(cells.size()) {
    std::optional<Family> family;  // costs a table of options for each cell
    for (size_t i = 0; i < cells.size(); ++i) {
      for (const auto& link : links) {
        named_[i].emplace_back();
        if (!has_conditions(link->text(cells[i].options))) continue;
        if (!family) family.emplace(cells, study);
        named_[i].back() = family->named_by(i, *link);
      }
    }
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
    for (size_t k = 0; k < links_.size(); ++k) {
      const std::string text = links_[k]->text(cell.options);
      if (text.empty()) continue;
      if (const std::optional<size_t> named = named_[i][k]) {
        way_.emplace_back(i, k);
        name(*named);
        way_.pop_back();
        links_[k]->take(cell, cells_[*named]);
        cell.parents.push_back(cells_[*named].run_id);
      } else if (is_run_id(text)) {
        cell.parents.push_back(text);
      } else {
        links_[k]->settle(cell);
      }
      links_[k]->adjust(cell);
      cell.run_id = cell.options.run_id();
    }
    states_[i] = State::named;
  }

  [[noreturn]] void refuse_circle(size_t i) const {
    const auto first =
        std::find_if(way_.begin(), way_.end(), [&](const auto& step) { return step.first == i; });
    const std::string key = links_[first->second]->key(cells_[i].options);
    if (std::next(first) == way_.end())
      throw ConfigError(fmt::format("{}: {} names this run itself", cells_[i].label, key));
    std::string circle;
    for (auto step = first; step != way_.end(); ++step)
      circle += fmt::format("{}, which {} ", cells_[step->first].label, links_[step->second]->verb());
    throw ConfigError(fmt::format("{} goes in a circle: {}the first", key, circle));
  }

  std::vector<Cell>& cells_;
  const Links& links_;
  std::vector<State> states_;
  std::vector<std::vector<std::optional<size_t>>> named_;  // by cell and link
  std::vector<std::pair<size_t, size_t>> way_;             // cells being named, and the links that led on
};

void require_a_run_for_each_seed(const std::vector<Cell>& cells, const Links& links) {
  std::map<std::pair<std::string, int64_t>, const Cell*> known;
  for (const Cell& cell : cells) {
    const auto link = std::find_if(links.begin(), links.end(),
                                   [&](const auto& each) { return !each->text(cell.options).empty(); });
    if (link == links.end()) continue;
    const auto [other, is_new] =
        known.try_emplace({cell.options.config_id(), cell.options.train.seed}, &cell);
    if (!is_new)
      throw ConfigError(
          fmt::format("{} and {} are one setting with one seed, for {} names two runs of one setting: "
                      "a seed counts once in each setting",
                      other->second->label, cell.label, (*link)->key(cell.options)));
  }
}

}  // namespace

bool has_conditions(const std::string& text) { return text.find('=') != std::string::npos; }

void resolve_needed_runs(std::vector<Cell>& cells, const Study& study, const Links& links) {
  Names(cells, study, links).give();
  cells = distinct_runs(cells);
  require_a_run_for_each_seed(cells, links);
}

}  // namespace basin
