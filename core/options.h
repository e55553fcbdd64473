// defines: OptionTable, the one table of a struct's options that serves TOML, --set, --print-config and HDF5 attributes;
// OptionView, the same options read-only; OptionTraits, the properties of an option besides its value.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/option_value.h"
#include "core/toml_file.h"

namespace basin {

/// A condition on a value; for a list, on each of its elements. `text`
/// completes "batch_size = 0 violates ...".
struct Constraint {
  std::string text;
  std::function<bool(const OptionValue&)> holds;
  std::vector<std::string> names = {};  // of one_of(): all that there are
};
Constraint anything();
Constraint at_least(double low);                    // value >= low
Constraint greater_than(double low);                // value > low
Constraint between(double low, double high);        // low <= value <= high
Constraint half_open(double low, double high);      // low <= value < high
Constraint one_of(std::vector<std::string> names);  // strings

/// A list with at least one element and none twice, each of which satisfies `each`.
Constraint distinct(Constraint each);

/// What depends on an option's value.
enum class OptionRole {
  identity,     // what a run computes: part of its name
  execution,    // how and where it is computed: times, memory and rounding, never what is computed
  measurement,  // what is measured on a run afterwards
};
/// Whether the cost of an image depends on an option: never, on whether it is on (neither 0 nor empty), on its value.
enum class OptionCost { none, if_on, by_value };

/// The properties of an option besides its value. Most options have the
/// defaults; a binder sets others where it adds one:
///   t.add("checkpoint_seconds", o.checkpoint_seconds, at_least(0), "...").execution();
struct OptionTraits {
  OptionRole role = OptionRole::identity;
  OptionCost cost = OptionCost::none;
  bool is_yardstick = false;   // what the trials of a tuning are compared at, so none of what it searches
  bool is_preset = false;      // chooses the values of other options (core/presets.h)
  bool is_repetition = false;  // tells the repetitions of one setting apart, so no part of the setting's name
  bool is_within_run = false;  // a place in the run: at most 1 where the study counts in shares of it
  bool has_quiet_default =
      false;  // no part of a run's name at its default: runs keep theirs from before the option

  OptionTraits& execution() { return role = OptionRole::execution, *this; }
  OptionTraits& costs() { return cost = OptionCost::by_value, *this; }
  OptionTraits& costs_if_on() { return cost = OptionCost::if_on, *this; }
  OptionTraits& yardstick() { return is_yardstick = true, *this; }
  OptionTraits& repetition() { return is_repetition = true, *this; }
  OptionTraits& within_run() { return is_within_run = true, *this; }
  OptionTraits& quiet_default() { return has_quiet_default = true, *this; }

  /// Runs with different values are different runs: a study may have a list of them.
  bool may_be_swept() const { return role == OptionRole::identity; }
  bool may_be_tuned() const { return may_be_swept() && !is_yardstick; }
};

struct Option {
  std::string key;  // dotted: "batch_size", "lamb.beta1"
  std::string help;
  Constraint constraint;
  OptionTraits traits;
  std::function<OptionValue()> get;
};

/// A read-only view of options: their values are the current ones of the fields. Refers to the structs that
/// hold the fields, which must outlive it.
class OptionView {
 public:
  bool has(const std::string& key) const;
  /// ConfigError for an unknown key, with the nearest known one.
  const Option& at(const std::string& key) const;
  size_t size() const { return options_.size(); }
  std::vector<Option>::const_iterator begin() const { return options_.begin(); }
  std::vector<Option>::const_iterator end() const { return options_.end(); }

  /// Canonical TOML: keys in the table's order, groups as [tables]. Reading it back gives the same text.
  std::string to_toml() const;
  /// The same with each option's help and constraint as a comment, for --print-config.
  std::string to_toml_with_help() const;

 private:
  friend class OptionTable;
  size_t place_of(const std::string& key) const;  // size() where there is none

  std::vector<Option> options_;
  std::vector<size_t> hashes_;  // of their keys: a table is made and searched for every cell of a grid
};

/// A list of options bound to the fields of structs that outlive the table.
///
///   struct SgdOptions { double momentum = 0.9;  bool nesterov = false; };
///   void bind_options(OptionTable& t, SgdOptions& o) {
///     t.add("momentum", o.momentum, half_open(0, 1), "heavy-ball momentum");
///     t.add("nesterov", o.nesterov, anything(), "Nesterov's look-ahead");
///   }
///   OptionTable table;
///   table.group("sgd", [&](OptionTable& t) { bind_options(t, options); });
///   table.set("sgd.momentum", 0.95, "study.toml:7");
///
/// Field types: bool, int64_t, double, std::string and vectors of the last three. An int64_t value is
/// accepted for a double field, never the other way round. Values are checked when they are set; NaN and
/// infinity are refused everywhere. A binder binds and changes no field: it serves view_of() too.
class OptionTable : public OptionView {
 public:
  /// Valid until the next add().
  template <class T>
  OptionTraits& add(const std::string& key, T& field, Constraint constraint, const std::string& help) {
    return insert(
        {prefix_ + key, help, std::move(constraint), traits_, [&field] { return OptionValue(field); }},
        [&field](const OptionValue& v) { field = std::get<T>(v); });
  }
  /// Options bound inside `bind` get the prefix "name.".
  void group(const std::string& name, const std::function<void(OptionTable&)>& bind);
  /// Options bound inside `bind` have these traits where they don't say otherwise.
  void within(const OptionTraits& traits, const std::function<void(OptionTable&)>& bind);
  /// Options bound inside `bind` call `assigned` with their name, without the table's prefix, and the value, after they
  /// were assigned (core/presets.h).
  void watch(const std::function<void(OptionTable&)>& bind,
             const std::function<void(const std::string& name, const OptionValue& value)>& assigned);

  /// Throws ConfigError "<where>: <key> = <value> violates <constraint>", or names the unknown key and the nearest known one, or
  /// the keys of its table.
  void set(const std::string& key, OptionValue value, const std::string& where);
  /// `text` is "key=value", the value in TOML syntax or a bare string.
  void set_from_text(const std::string& text, const std::string& where);

 private:
  using Assign = std::function<void(const OptionValue&)>;  // the value already has the option's type
  OptionTraits& insert(Option option, Assign assign);
  std::string prefix_;
  OptionTraits traits_;
  std::vector<Assign> assign_;  // one for each of options_
};

/// A view of what `bind` binds of a const object. The cast serves binders, which are written once and take
/// mutable fields: they change none, and a view can't.
template <class O, class Bind>
OptionView view_of(const O& object, const Bind& bind) {
  OptionTable table;
  bind(table, const_cast<O&>(object));
  return OptionView(std::move(table));
}
/// The view of a struct with a function bind_options(OptionTable&, O&).
template <class O>
OptionView view_of(const O& options) {
  return view_of(options, [](OptionTable& table, O& o) { bind_options(table, o); });
}
// A view of a temporary would outlive it.
template <class O, class Bind>
OptionView view_of(const O&& object, const Bind& bind) = delete;
template <class O>
OptionView view_of(const O&& options) = delete;

/// A copy of the options in which those of one role have their defaults.
template <class O>
O with_defaults(O options, OptionRole role) {
  const O defaults;
  OptionTable table;
  bind_options(table, options);
  for (const Option& option : view_of(defaults))
    if (option.traits.role == role) table.set(option.key, option.get(), "default");
  return options;
}

/// Sets every entry in the table; an unknown key is an error with its line.
void set_all(OptionTable& table, const std::vector<TomlEntry>& entries);

}  // namespace basin
