// defines: bind_presets(), a named set of values for a struct of options.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/options.h"
#include "core/registry.h"

namespace basin {

/// Base of structs of options that have presets.
struct WithPreset {
  std::string preset;
  std::string values_of;          // the preset whose values the others hold where they were not
  std::set<std::string> by_hand;  // set by hand: their names
};

template <class O>
struct Preset {
  std::string name;
  O values;
};

template <class O>
Preset<O> preset(const std::string& name, O values) {
  values.preset = values.values_of = name;
  return {name, values};
}

/// Adds the option `key` and, by `bind_fields`, the others. Choosing a preset gives each of the others its value but
/// for those that were set by hand, before or after: the order of keys in a file means nothing. The table always shows
/// the values that count, so a preset's name in a record is a comment next to them. ConfigError where everything was set by
/// hand already, as by a resolved config.toml: another preset's name over the old values would be a lie.
///
/// `options` starts as a copy of a preset's values. `presets`, made by preset(), outlives the table.
template <class O>
void bind_presets(OptionTable& table, O& options, const std::vector<Preset<O>>& presets,
                  void (*bind_fields)(OptionTable&, O&), const std::string& help,
                  const std::string& key = "preset") {
  const auto take_preset = [&options, &presets, bind_fields, key](const std::string& /*name*/,
                                                                  const OptionValue& chosen) {
    O theirs = find_entry(presets, std::get<std::string>(chosen), key).values;
    OptionTable from, to;
    bind_fields(from, theirs);
    bind_fields(to, options);
    if (theirs.preset != options.values_of && options.by_hand.size() == from.size())
      throw ConfigError(key + " = \"" + theirs.preset +
                        "\" changes nothing: every option that it would set is set already");
    for (const Option& option : from)
      if (options.by_hand.count(option.key) == 0) to.set(option.key, option.get(), key);
    options.values_of = theirs.preset;
  };
  const auto bind_preset = [&](OptionTable& t) {
    t.add(key, options.preset, one_of(names_of(presets)), help).is_preset = true;
  };
  table.watch(bind_preset, take_preset);
  table.watch([&](OptionTable& t) { bind_fields(t, options); },
              [&options](const std::string& name, const OptionValue&) { options.by_hand.insert(name); });
}

}  // namespace basin
