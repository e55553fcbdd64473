#include "apps/study.h"
#include "apps/study_values.h"
#include "core/error.h"
#include "core/files.h"

namespace basin {
namespace {

// "when.batch_size" with prefix "when" -> "batch_size"; empty for other keys.
std::string key_below(const std::string& key, const std::string& prefix) {
  return key.rfind(prefix + ".", 0) == 0 ? key.substr(prefix.size() + 1) : "";
}

// Reads a study document step by step into a Study.
class StudyReader {
 public:
  StudyReader(const TomlDocument& document, const std::vector<std::string>& sets) {
    study_.base = run_options_from(document, {});
    for (const TomlEntry& entry : document.entries) read_sweep_entry(entry);
    for (const TomlTableArray& array : document.table_arrays) read_rules(array);
    for (const std::string& set : sets) read_command_line(set);
    apply_overrides();
    finish_selection(document);
    for (const Rule& rule : study_.set_rules) check_rule(rule);
    for (const Rule& rule : study_.skip_rules) check_rule(rule);
    for (const Rule& rule : study_.expect_rules) check_rule(rule);
  }
  Study take() { return std::move(study_); }
  const std::string& appendix() const { return appendix_; }

 private:
  void read_sweep_entry(const TomlEntry& entry) {
    const std::string key = key_below(entry.key, "sweep");
    if (key.empty()) return;
    if (key == "select") {
      if (entry.value != OptionValue(std::string("validation_loss"))) {
        throw ConfigError(fmt::format("{}: sweep.select = {} violates sweep.select one of validation_loss",
                                      entry.where, to_toml(entry.value)));
      }
      study_.selection.enabled = true;
      study_.selection.where = entry.where;
    } else if (key == "select_seeds") {
      for (const OptionValue& seed : checked_values("seed", entry.value, entry.where)) {
        study_.selection.seeds.push_back(std::get<int64_t>(seed));
      }
      select_seeds_where_ = entry.where;
    } else if (key == kRate) {
      study_.learning_rates = checked_rates(entry.value, entry.where);
    } else {
      if (!defines_a_run(key)) {
        throw ConfigError(
            fmt::format("{}: {} does not tell runs apart, so it can't be swept", entry.where, key));
      }
      study_.axes.push_back({key, checked_values(key, entry.value, entry.where), entry.where});
    }
  }

  void read_rules(const TomlTableArray& array) {
    const std::string kind = key_below(array.key, "sweep");
    for (size_t i = 0; i < array.tables.size(); ++i) {
      if (kind == "set")
        study_.set_rules.push_back(read_rule(array.tables[i], array.where[i], "set"));
      else if (kind == "skip")
        study_.skip_rules.push_back(read_rule(array.tables[i], array.where[i], ""));
      else if (kind == "expect")
        study_.expect_rules.push_back(read_rule(array.tables[i], array.where[i], "gradients"));
      else if (kind == "override")
        read_override(array.tables[i], array.where[i]);
      else
        throw ConfigError(fmt::format("{}: unknown table [[{}]]; known: sweep.set, sweep.skip, sweep.expect",
                                      array.where[i], array.key));
    }
  }

  // `body` is what stands beside `when`: "set" (a table), "gradients" (a number) or nothing.
  Rule read_rule(const std::vector<TomlEntry>& entries, const std::string& where, const std::string& body) {
    Rule rule{{}, {}, where};
    for (const TomlEntry& entry : entries) {
      if (const std::string key = key_below(entry.key, "when"); !key.empty()) {
        rule.when.push_back({key, checked_values(key, entry.value, entry.where), entry.where});
      } else if (const std::string set = key_below(entry.key, "set"); body == "set" && !set.empty()) {
        rule.set.push_back({set, entry.value, entry.where});
      } else if (body == "gradients" && entry.key == "gradients") {
        rule.set.push_back(
            {"max_gradients", checked_values("max_gradients", entry.value, entry.where).at(0), entry.where});
      } else {
        throw ConfigError(fmt::format("{}: unknown key \"{}\" in a rule; known: when{}", entry.where,
                                      entry.key, body.empty() ? "" : ", " + body));
      }
    }
    if (!body.empty() && rule.set.empty())
      throw ConfigError(fmt::format("{}: the rule has no `{}`", where, body));
    if (body.empty() && rule.when.empty())
      throw ConfigError(where + ": the rule has no `when` and would skip every run");
    return rule;
  }

  void read_override(const std::vector<TomlEntry>& entries, const std::string& where) {
    const Rule rule = read_rule(entries, where, "set");
    if (!rule.when.empty()) throw ConfigError(where + ": an override has no `when`");
    overrides_.insert(overrides_.end(), rule.set.begin(), rule.set.end());
  }

  // "--set key=value"; the value in TOML syntax or a bare string, a list where the key is swept.
  void read_command_line(const std::string& text) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw ConfigError("--set: expected key=value, got \"" + text + "\"");
    }
    const std::string key = text.substr(0, equals), value = text.substr(equals + 1);
    TomlEntry entry{key, value, "--set"};
    try {
      const TomlDocument parsed = parse_toml("v = " + value + "\n", "--set");
      if (parsed.entries.size() == 1) entry.value = parsed.entries[0].value;
    } catch (const ConfigError&) {
      if (!value.empty() && (value[0] == '[' || value[0] == '"')) throw;
    }
    RunOptions scratch;
    const OptionTable table = scratch.table();
    if (table.has(key) && std::holds_alternative<std::string>(table.at(key).get()) && !is_list(entry.value) &&
        !std::holds_alternative<std::string>(entry.value)) {
      entry.value = value;  // a name that reads as a number
    }
    overrides_.push_back(entry);
    if (key.rfind("runtime.", 0) != 0) {
      appendix_ += fmt::format("\n[[sweep.override]]  # --set on the command line\nset = {{ {} = {} }}\n",
                               key, to_toml(entry.value));
    }
  }

  void apply_overrides() {
    Rule last{{}, {}, ""};
    for (const TomlEntry& entry : overrides_) {
      Axis* const axis = find_axis(entry.key);
      if (axis != nullptr) {
        file_axes_.push_back(*axis);
        axis->values = checked_values(entry.key, entry.value, entry.where);
      } else {
        last.set.push_back(entry);
      }
    }
    if (!last.set.empty()) study_.set_rules.push_back(last);
  }

  void finish_selection(const TomlDocument& document) {
    SelectionPlan& selection = study_.selection;
    if (!selection.enabled) {
      if (!selection.seeds.empty())
        throw ConfigError(select_seeds_where_ + ": sweep.select_seeds needs sweep.select");
      return;
    }
    if (selection.seeds.empty()) {
      const Axis* const axis = find_axis("seed");
      selection.seeds = {axis ? std::get<int64_t>(axis->values[0]) : study_.base.train.seed};
    }
    bool said = false;
    for (const TomlEntry& entry : document.entries) said = said || entry.key == "data.validation";
    if (!said) study_.base.data.validation = 0.1;
  }

  // Keys, types and ranges of what it sets, and whether it can hold at all.
  void check_rule(const Rule& rule) {
    for (const TomlEntry& entry : rule.set) check_assignment(rule, entry);
    for (const Condition& condition : rule.when) check_condition(condition);
  }

  void check_assignment(const Rule& rule, const TomlEntry& entry) {
    if (find_axis(entry.key) != nullptr) {
      throw ConfigError(fmt::format("{}: {} is swept, so a rule can't set it", entry.where, entry.key));
    }
    if (entry.key == kRate) {
      checked_rates(entry.value, entry.where);
      for (const Condition& condition : rule.when) {
        if (condition.key == kRate || condition.key == "seed") {
          throw ConfigError(
              fmt::format("{}: a learning rate can't depend on {}", entry.where, condition.key));
        }
      }
      return;
    }
    RunOptions scratch;
    scratch.table().set(entry.key, entry.value, entry.where);
  }

  void check_condition(const Condition& condition) {
    if (condition.key == kRate) return;
    const std::vector<OptionValue> possible = values_taken(condition.key);
    for (const OptionValue& value : condition.values) {
      if (contains(possible, value)) continue;
      std::string known;
      for (const OptionValue& p : possible) known += (known.empty() ? "" : ", ") + to_toml(p);
      throw ConfigError(
          fmt::format("{}: the rule can never hold: {} = {} is not among the study's values ({})",
                      condition.where, condition.key, to_toml(value), known));
    }
  }

  // All values that the option can have in some cell: its axis in the file and after --set, or its base value
  // and rules.
  std::vector<OptionValue> values_taken(const std::string& key) {
    std::vector<OptionValue> values;
    if (const Axis* axis = find_axis(key)) {
      values = axis->values;
      for (const Axis& replaced : file_axes_) {
        if (replaced.key == key) values.insert(values.end(), replaced.values.begin(), replaced.values.end());
      }
    } else {
      values.push_back(study_.base.table().at(key).get());
      for (const Rule& rule : study_.set_rules) {
        for (const TomlEntry& entry : rule.set) {
          if (entry.key == key) values.push_back(checked_values(key, entry.value, entry.where)[0]);
        }
      }
    }
    if (key == "seed")
      values.insert(values.end(), study_.selection.seeds.begin(), study_.selection.seeds.end());
    return values;
  }

  Axis* find_axis(const std::string& key) {
    for (Axis& axis : study_.axes) {
      if (axis.key == key) return &axis;
    }
    return nullptr;
  }

  Study study_;
  std::vector<TomlEntry> overrides_;
  std::vector<Axis> file_axes_;  // as they were before --set
  std::string appendix_, select_seeds_where_;
};

}  // namespace

Study parse_study(const std::string& text, const std::string& file_name,
                  const std::vector<std::string>& sets) {
  StudyReader reader(parse_toml(text, file_name), sets);
  Study study = reader.take();
  study.text = text + reader.appendix();
  return study;
}

Study read_study(const std::string& path, const std::vector<std::string>& sets) {
  return parse_study(read_file(path), path, sets);
}

}  // namespace basin
