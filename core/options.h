// defines: OptionTable, the one table of a struct's options that serves TOML, --set, --print-config and HDF5 attributes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/option_value.h"
#include "core/toml_file.h"

namespace basin {

/// What a value must satisfy; for a list, each of its elements. `text` completes "batch_size = 0 violates ...".
struct Constraint {
  std::string text;
  std::function<bool(const OptionValue&)> holds;
};
Constraint anything();
Constraint at_least(double low);                    // value >= low
Constraint greater_than(double low);                // value > low
Constraint between(double low, double high);        // low <= value <= high
Constraint half_open(double low, double high);      // low <= value < high
Constraint one_of(std::vector<std::string> names);  // strings

/// A list with at least one element and none twice, each of which satisfies `each`.
Constraint distinct(Constraint each);

struct Option {
  std::string key;  // dotted: "batch_size", "lamb.beta1"
  std::string help;
  Constraint constraint;
  std::function<OptionValue()> get;
  std::function<void(const OptionValue&)> assign;  // the value already has this option's type
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
/// Field types: bool, int64_t, double, std::string and vectors of the last three. An int64_t value is taken for a double
/// field, never the other way round. Values are checked when they are set; NaN and infinity are refused everywhere.
class OptionTable {
 public:
  template <class T>
  void add(const std::string& key, T& field, Constraint constraint, const std::string& help) {
    insert({prefix_ + key, help, std::move(constraint), [&field] { return OptionValue(field); },
            [&field](const OptionValue& v) { field = std::get<T>(v); }});
  }
  /// Options bound inside `bind` get the prefix "name.".
  void group(const std::string& name, const std::function<void(OptionTable&)>& bind);
  /// Options bound inside `bind` call `assigned` with their name, without the table's prefix, and the value, after they
  /// were assigned (core/presets.h).
  void watch(const std::function<void(OptionTable&)>& bind,
             const std::function<void(const std::string& name, const OptionValue& value)>& assigned);

  /// Throws ConfigError "<where>: <key> = <value> violates <constraint>", or names the unknown key and the nearest known one, or
  /// the keys of its table.
  void set(const std::string& key, OptionValue value, const std::string& where);
  /// `text` is "key=value", the value in TOML syntax or a bare string.
  void set_from_text(const std::string& text, const std::string& where);
  bool has(const std::string& key) const;
  const Option& at(const std::string& key) const;
  const std::vector<Option>& options() const { return options_; }

  /// Canonical TOML: keys in the table's order, groups as [tables]. Reading it back gives the same text.
  std::string to_toml() const;
  /// The same with each option's help and constraint as a comment, for --print-config.
  std::string to_toml_with_help() const;

 private:
  void insert(Option option);
  std::string prefix_;
  std::vector<Option> options_;
};

/// Sets every entry in the table; an unknown key is an error with its line.
void set_all(OptionTable& table, const std::vector<TomlEntry>& entries);

}  // namespace basin
