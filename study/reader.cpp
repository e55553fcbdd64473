#include "core/error.h"
#include "core/files.h"
#include "core/nearest.h"
#include "study/registered.h"
#include "study/study.h"
#include "study/tuning_reader.h"
#include "study/values.h"

namespace basin {
namespace {

// Reads a study document step by step into a Study.
class StudyReader {
 public:
  StudyReader(const TomlDocument& document, const std::vector<std::string>& sets,
              const std::string& selection) {
    study_.base = run_options_from(without_tuned_rate(document, tuned_where_), {});
    study_.rates.tuned = !tuned_where_.empty();
    for (const TomlEntry& entry : document.entries) read_entry(entry);
    for (const TomlTableArray& array : document.table_arrays) read_array(array);
    sweep_by_arms();
    read_claims(document);
    derive_seeds();
    for (const std::string& set : sets) read_command_line(set);
    apply_overrides();
    take_selection(selection);
    finish_tuning();
    hold_validation_out(document);
    give_arms_the_base();
    for (const Rule& rule : study_.set_rules) check_rule(rule);
    for (const Rule& rule : study_.skip_rules) check_rule(rule);
    for (const Rule& rule : study_.expect_rules) check_rule(rule);
    for (const ArmRule& arm : study_.arms) check_arm(arm);
    for (const RangeRule& rule : study_.tuning.ranges) check_range(rule);
  }
  Study take() { return std::move(study_); }
  const std::string& appendix() const { return appendix_; }

 private:
  void read_entry(const TomlEntry& entry) {
    const std::string table = entry.key.substr(0, entry.key.find('.'));
    if (table == "contrast" || table == "hypothesis")
      throw ConfigError(fmt::format("{}: each {} is a table of its own, [[{}]]", entry.where, table, table));
    if (const std::string key = key_below(entry.key, "tune"); !key.empty()) {
      set_tune_option(study_.tuning.options, key, entry.value, entry.where);
      if (tune_where_.empty()) tune_where_ = entry.where;
    }
    if (const std::string key = key_below(entry.key, "sweep"); !key.empty()) read_sweep_entry(key, entry);
  }

  void read_sweep_entry(const std::string& key, const TomlEntry& entry) {
    if (key == "select") {
      OptionTable table;
      table.group("sweep", [&](OptionTable& t) { bind_select(t, study_.tuning.options); });
      table.set(entry.key, entry.value, entry.where);
      select_where_ = entry.where;
    } else if (key == "select_seeds") {
      for (const OptionValue& seed : checked_values(repetition_key(), entry.value, entry.where)) {
        select_seeds_.push_back(std::get<int64_t>(seed));
      }
      select_seeds_where_ = entry.where;
    } else if (key == "selection") {
      const auto* const path = std::get_if<std::string>(&entry.value);
      if (path == nullptr)
        throw ConfigError(entry.where + ": sweep.selection should be the path of a selection.toml");
      selection_ = *path;
    } else if (key == "registered_seeds") {
      read_registered_seeds(entry);
    } else if (key == kRate) {
      study_.rates = checked_rates(entry.value, entry.where);
      note_tuned(study_.rates, entry.where);
    } else {
      if (!may_be_swept(key)) {
        throw ConfigError(
            fmt::format("{}: {} does not tell runs apart, so it can't be swept", entry.where, key));
      }
      study_.axes.push_back({key, checked_values(key, entry.value, entry.where), entry.where});
    }
  }

  // The axis stands here and gets its values once the hypotheses are read.
  void read_registered_seeds(const TomlEntry& entry) {
    const auto* const count = std::get_if<int64_t>(&entry.value);
    if (count == nullptr || *count < 1 || *count > 10000)
      throw ConfigError(entry.where + ": sweep.registered_seeds should be a whole number from 1 to 10000");
    study_.registered_seeds = *count;
    study_.axes.push_back({repetition_key(), {}, entry.where});
  }

  // Contrasts before hypotheses, wherever they stand.
  void read_claims(const TomlDocument& document) {
    for (const TomlTableArray& array : document.table_arrays)
      if (array.key == "contrast") study_.contrasts = read_contrasts(array);
    for (const TomlTableArray& array : document.table_arrays)
      if (array.key == "hypothesis") study_.hypotheses = read_hypotheses(array, study_.contrasts);
  }

  void derive_seeds() {
    if (study_.registered_seeds == 0) return;
    std::vector<Axis*> seeds;
    for (Axis& axis : study_.axes)
      if (axis.key == repetition_key()) seeds.push_back(&axis);
    Axis& axis = *seeds.front();
    if (seeds.size() > 1)
      throw ConfigError(axis.where + ": sweep.registered_seeds and sweep.seed exclude each other");
    const std::vector<Claim> claims = claims_of(study_.contrasts, study_.hypotheses);
    const auto is_confirming = [](const Claim& claim) {
      return claim.kind == "hypothesis" && !claim.exploratory;
    };
    if (std::none_of(claims.begin(), claims.end(), is_confirming))
      throw ConfigError(axis.where + ": sweep.registered_seeds needs a [[hypothesis]] to derive seeds from");
    const std::vector<int64_t> derived = registered_seeds(registered_hash(claims), study_.registered_seeds);
    axis.values = {derived.begin(), derived.end()};
  }

  void note_tuned(const RateChoices& rates, const std::string& where) {
    if (rates.tuned && tuned_where_.empty()) tuned_where_ = where;
  }

  void read_array(const TomlTableArray& array) {
    if (array.key == "sweep.selected") {
      study_.selected = read_winners(array);
      study_.selected_from = array.where.at(0);
      return;
    }
    if (array.key == "contrast" || array.key == "hypothesis") return;  // read_claims()
    if (array.key == "sweep.arm") return read_arms(array);
    if (array.key != "tune.range") return read_rules(array);
    for (size_t i = 0; i < array.tables.size(); ++i) {
      study_.tuning.ranges.push_back(read_range(array.tables[i], array.where[i]));
    }
    if (tune_where_.empty()) tune_where_ = array.where.at(0);
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
        throw ConfigError(
            fmt::format("{}: unknown table [[{}]]; known: sweep.set, sweep.skip, sweep.expect, sweep.arm, "
                        "tune.range",
                        array.where[i], array.key));
    }
  }

  // `body` is what stands next to `when`: "set" (a table), "gradients" (a number) or nothing.
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

  void read_arms(const TomlTableArray& array) {
    for (size_t i = 0; i < array.tables.size(); ++i) {
      const Rule rule = read_rule(array.tables[i], array.where[i], "set");
      ArmRule arm{rule.when, {}, array.where[i]};
      for (const TomlEntry& entry : rule.set) {
        if (entry.key == kRate || entry.key == repetition_key())
          throw ConfigError(
              fmt::format("{}: an arm can't set {}; a rule gives it its learning rate, and it has the seeds "
                          "of the settings it is made from",
                          entry.where, entry.key));
        if (!may_be_swept(entry.key)) {
          throw ConfigError(
              fmt::format("{}: {} does not tell runs apart, so an arm can't set it", entry.where, entry.key));
        }
        arm.set.push_back({entry.key, checked_values(entry.key, entry.value, entry.where), entry.where});
      }
      study_.arms.push_back(arm);
    }
  }

  // What arms set and [sweep] doesn't list has the base's value everywhere else. The axis stands here and gets that value once
  // the base is known.
  void sweep_by_arms() {
    for (const ArmRule& arm : study_.arms)
      for (const Axis& changed : arm.set) {
        file_axes_.push_back(changed);
        if (find_axis(changed.key) == nullptr) study_.axes.push_back({changed.key, {}, changed.where, true});
      }
  }

  void give_arms_the_base() {
    for (std::vector<Axis>* const axes : {&study_.axes, &file_axes_})
      for (Axis& axis : *axes)
        if (axis.of_arms && axis.values.empty()) axis.values = {study_.base.table().at(axis.key).get()};
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
    const RunOptions scratch;
    const OptionView table = scratch.table();
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
        axis->of_arms = axis->of_arms && axis->values.size() == 1;
        drop_arms(entry.key);
      } else if (const std::string key = key_below(entry.key, "tune"); !key.empty()) {
        set_tune_option(study_.tuning.options, key, entry.value, entry.where);
      } else {
        drop_ranges(entry.key);
        last.set.push_back(entry);
      }
    }
    if (!last.set.empty()) study_.set_rules.push_back(last);
  }

  // A value for all: no arm differs in it.
  void drop_arms(const std::string& key) {
    for (ArmRule& arm : study_.arms)
      std::erase_if(arm.set, [&](const Axis& axis) { return axis.key == key; });
    std::erase_if(study_.arms, [](const ArmRule& arm) { return arm.set.empty(); });
  }

  // A value in place of a search.
  void drop_ranges(const std::string& key) {
    std::vector<RangeRule>& ranges = study_.tuning.ranges;
    const auto searches_it = [&](const RangeRule& rule) { return key != kRate && rule.range.key == key; };
    ranges.erase(std::remove_if(ranges.begin(), ranges.end(), searches_it), ranges.end());
  }

  // A frozen study has the winners themselves; the file that they came from may be gone.
  void take_selection(const std::string& from_command_line) {
    if (!study_.selected.empty() && !from_command_line.empty())
      throw ConfigError(study_.selected_from +
                        ": the study has its selection already, so --selection can't be given");
    const std::string path = from_command_line.empty() ? selection_ : from_command_line;
    if (!study_.selected.empty() || path.empty()) return;
    study_.selected = read_selection(path);
    study_.selected_from = path;
    appendix_ += winners_toml(study_.selected);
  }

  void finish_tuning() {
    for (const Rule& rule : study_.set_rules) {
      for (const TomlEntry& entry : rule.set) {
        if (entry.key == kRate) note_tuned(checked_rates(entry.value, entry.where), entry.where);
      }
    }
    refuse_contradictions();
    TuningPlan& tuning = study_.tuning;
    tuning.sampled = !tuned_where_.empty();
    tuning.where = tuning.sampled ? tune_where_ : select_where_;
    tuning.enabled = !select_where_.empty() || (tuning.sampled && study_.selected.empty());
    if (!tuning.sampled) tuning.options.seeds = select_seeds_;
    if (tuning.options.seeds.empty()) {
      if (tuning.enabled && study_.registered_seeds > 0)
        throw ConfigError(
            tuning.where +
            ": next to sweep.registered_seeds the seeds of the tuning have to be given (tune.seeds or "
            "sweep.select_seeds): a seed that confirms must not choose");
      const Axis* const axis = find_axis(repetition_key());
      tuning.options.seeds = {axis ? std::get<int64_t>(axis->values[0]) : study_.base.train.seed};
    }
    if (tuning.enabled) tuning.rungs();  // refuses a halving that has nothing to halve
    if (tuning.enabled && tuning.options.halving > 0 && tuning.options.select == kByGradients)
      throw ConfigError(
          tuning.where +
          ": tune.select = \"gradients\" with tune.halving: a part of the budget ends before the "
          "target, so the first rungs could not choose");
  }

  void refuse_contradictions() const {
    if (select_where_.empty() && !select_seeds_where_.empty())
      throw ConfigError(select_seeds_where_ + ": sweep.select_seeds needs sweep.select");
    if (!select_where_.empty() && !tuned_where_.empty()) {
      throw ConfigError(
          select_where_ +
          ": sweep.select chooses from lists of learning rates, learning_rate = \"tuned\" by [tune]: "
          "one of the two");
    }
    if (!select_where_.empty() && !tune_where_.empty())
      throw ConfigError(tune_where_ + ": [tune] and sweep.select are two ways of choosing: one of the two");
    if (!study_.selected.empty() && tuned_where_.empty())
      throw ConfigError(study_.selected_from +
                        ": the selection is for runs with learning_rate = \"tuned\": there is none");
    if (!tune_where_.empty() && tuned_where_.empty())
      throw ConfigError(tune_where_ +
                        ": [tune] needs learning_rate = \"tuned\" at the top, in [sweep] or in a rule");
    if (tuned_where_.empty() || !study_.selected.empty()) return;
    if (study_.tuning.ranges.empty()) {
      throw ConfigError(
          tuned_where_ +
          ": learning_rate = \"tuned\" needs a [[tune.range]] of learning_rate, or a sweep.selection");
    }
    refuse_list(study_.rates, tuned_where_);
    for (const Rule& rule : study_.set_rules) {
      for (const TomlEntry& entry : rule.set) {
        if (entry.key == kRate) refuse_list(checked_rates(entry.value, entry.where), entry.where);
      }
    }
  }

  // The budget would not be equal.
  static void refuse_list(const RateChoices& rates, const std::string& where) {
    if (rates.values.size() > 1)
      throw ConfigError(
          where +
          ": a list of learning rates next to learning_rate = \"tuned\": one value or a [[tune.range]]");
  }

  // Tuning and final runs train on the same images, whether the winners are found here or were before.
  void hold_validation_out(const TomlDocument& document) {
    if (select_where_.empty() && tuned_where_.empty()) return;
    RunOptions defaults;
    defaults.data.validation = 0.1;
    study_.base = run_options_from(without_tuned_rate(document, tuned_where_), {}, std::move(defaults));
  }

  void check_range(const RangeRule& rule) {
    const SearchRange& range = rule.range;
    if (find_axis(range.key) != nullptr)
      throw ConfigError(fmt::format("{}: {} is swept, so it can't be searched", range.where, range.key));
    for (const Rule& set : study_.set_rules) {
      for (const TomlEntry& entry : set.set) {
        if (entry.key == range.key && range.key != kRate)
          throw ConfigError(fmt::format("{}: {} is searched ({}), so a rule can't set it", entry.where,
                                        range.key, range.where));
      }
    }
    for (const Condition& condition : rule.when) {
      if (condition.key == repetition_key() || is_searched(condition.key)) {
        throw ConfigError(fmt::format("{}: a range can't depend on {}", condition.where, condition.key));
      }
      check_condition(condition);
    }
  }

  bool is_searched(const std::string& key) const {
    const std::vector<RangeRule>& ranges = study_.tuning.ranges;
    return key == kRate || std::any_of(ranges.begin(), ranges.end(),
                                       [&](const RangeRule& rule) { return rule.range.key == key; });
  }

  // Keys, types and ranges of what it sets, and whether it can hold at all.
  void check_rule(const Rule& rule) {
    for (const TomlEntry& entry : rule.set) check_assignment(rule, entry);
    for (const Condition& condition : rule.when) check_condition(condition);
  }

  void check_arm(const ArmRule& arm) {
    for (const Condition& condition : arm.when) {
      if (is_searched(condition.key))
        throw ConfigError(fmt::format("{}: an arm can't depend on {}", condition.where, condition.key));
      check_condition(condition);
    }
  }

  void check_assignment(const Rule& rule, const TomlEntry& entry) {
    if (find_axis(entry.key) != nullptr) {
      throw ConfigError(fmt::format("{}: {} is swept, so a rule can't set it", entry.where, entry.key));
    }
    if (entry.key == kRate) {
      checked_rates(entry.value, entry.where);
      for (const Condition& condition : rule.when) {
        if (condition.key == repetition_key() || is_searched(condition.key)) {
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
    if (is_searched(condition.key)) return;
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
    if (key == repetition_key())
      values.insert(values.end(), study_.tuning.options.seeds.begin(), study_.tuning.options.seeds.end());
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
  std::vector<Axis> file_axes_;  // as they were before --set, and what arms set
  std::vector<int64_t> select_seeds_;
  std::string selection_;  // path, of sweep.selection
  // "file:line" of what was said; empty where it wasn't.
  std::string tuned_where_, tune_where_, select_where_, select_seeds_where_;
  std::string appendix_;
};

}  // namespace

Study parse_study(const std::string& text, const std::string& file_name, const std::vector<std::string>& sets,
                  const std::string& selection) {
  StudyReader reader(parse_toml(text, file_name), sets, selection);
  Study study = reader.take();
  study.text = text + reader.appendix();
  return study;
}

Study read_study(const std::string& path, const std::vector<std::string>& sets,
                 const std::string& selection) {
  return parse_study(read_file(path), path, sets, selection);
}

}  // namespace basin
