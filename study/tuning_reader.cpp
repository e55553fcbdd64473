#include "study/tuning_reader.h"

#include "core/error.h"

namespace basin {
namespace {

Condition condition_of(const TomlEntry& entry, const std::string& key) {
  return {key, checked_values(key, entry.value, entry.where), entry.where};
}

void check_searchable(const SearchRange& range) {
  RunOptions scratch;
  OptionTable table = scratch.table();
  const bool known = table.has(range.key);
  const size_t type = known ? table.at(range.key).get().index() : OptionValue(0.0).index();
  if (type != OptionValue(0.0).index() && type != OptionValue(int64_t{0}).index())
    throw ConfigError(fmt::format("{}: {} is not a number, so it can't be searched", range.where, range.key));
  if (known && !table.at(range.key).traits.may_be_tuned()) {
    throw ConfigError(fmt::format("{}: {} can't be searched: trials are compared at the same value of it",
                                  range.where, range.key));
  }
  const bool whole = type == OptionValue(int64_t{0}).index();
  for (const double end : {range.low, range.high}) {  // an unknown key, an end that the option doesn't take
    table.set(range.key, whole ? OptionValue(static_cast<int64_t>(std::llround(end))) : OptionValue(end),
              range.where);
  }
}

}  // namespace

TomlDocument without_tuned_rate(TomlDocument document, std::string& where) {
  const auto is_tuned = [](const TomlEntry& entry) {
    return entry.key == kRate && entry.value == OptionValue(std::string(kTuned));
  };
  std::vector<TomlEntry>& entries = document.entries;
  for (const TomlEntry& entry : entries) {
    if (is_tuned(entry)) where = entry.where;
  }
  entries.erase(std::remove_if(entries.begin(), entries.end(), is_tuned), entries.end());
  return document;
}

std::string key_below(const std::string& key, const std::string& prefix) {
  return key.starts_with(prefix + ".") ? key.substr(prefix.size() + 1) : "";
}

void set_tune_option(TuneOptions& options, const std::string& key, const OptionValue& value,
                     const std::string& where) {
  OptionTable table;
  table.group("tune", [&](OptionTable& t) { bind_options(t, options); });
  table.set("tune." + key, value, where);
}

RangeRule read_range(const std::vector<TomlEntry>& entries, const std::string& where) {
  RangeRule rule;
  rule.range.where = where;
  OptionTable table;
  bind_options(table, rule.range);
  for (const TomlEntry& entry : entries) {
    if (const std::string key = key_below(entry.key, "when"); !key.empty())
      rule.when.push_back(condition_of(entry, key));
    else
      table.set(entry.key, entry.value, entry.where);
  }
  check(rule.range);
  check_searchable(rule.range);
  return rule;
}

std::vector<Rule> read_winners(const TomlTableArray& tables) {
  std::vector<Rule> winners;
  for (size_t i = 0; i < tables.tables.size(); ++i) {
    Rule& winner = winners.emplace_back(Rule{{}, {}, tables.where[i]});
    for (const TomlEntry& entry : tables.tables[i]) {
      if (const std::string key = key_below(entry.key, "when"); !key.empty())
        winner.when.push_back(condition_of(entry, key));
      if (const std::string key = key_below(entry.key, "set"); !key.empty())
        winner.set.push_back({key, checked_values(key, entry.value, entry.where).at(0), entry.where});
    }
    if (winner.when.empty() || winner.set.empty()) {
      throw ConfigError(fmt::format(
          "{}: the choice has no `when` and `set`: not written by `basin tune`, or by an older version",
          winner.where));
    }
  }
  return winners;
}

std::vector<Rule> read_selection(const std::string& path) {
  const TomlTableArray choices = read_toml_tables(path, "choice", {"when", "set"});
  if (choices.tables.empty()) throw ConfigError(path + ": has no [[choice]]: not a selection.toml");
  return read_winners(choices);
}

std::string winners_toml(const std::vector<Rule>& winners) {
  std::string text;
  for (const Rule& winner : winners) {
    Settings when, set;
    for (const Condition& condition : winner.when) when.emplace_back(condition.key, condition.values.at(0));
    for (const TomlEntry& entry : winner.set) set.emplace_back(entry.key, entry.value);
    text += fmt::format("\n[[sweep.selected]]\nwhen = {}\nset = {}\n", to_toml(when), to_toml(set));
  }
  return text;
}

}  // namespace basin
