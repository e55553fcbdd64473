// defines: what the registries of models, optimisers, schedules, data sets and probes share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/nearest.h"
#include "core/options.h"

namespace basin {

/// Type-erased options of one registered member. `bind` adds them to a
/// table (inside a group named after the member).
struct AnyOptions {
  virtual ~AnyOptions() = default;
  virtual void bind(OptionTable& table) = 0;
  /// A read-only view; in a group if one is named.
  OptionView view(const std::string& group = "") const {
    return view_of(*this, [&](OptionTable& table, AnyOptions& options) {
      if (group.empty()) return options.bind(table);
      table.group(group, [&](OptionTable& t) { options.bind(t); });
    });
  }
  virtual std::unique_ptr<AnyOptions> clone() const = 0;
};

/// AnyOptions of a struct O that has a free function bind_options(OptionTable&, O&).
template <class O>
struct OptionsOf final : AnyOptions {
  O value;
  void bind(OptionTable& table) override { bind_options(table, value); }
  std::unique_ptr<AnyOptions> clone() const override { return std::make_unique<OptionsOf<O>>(*this); }
};

template <class O>
std::unique_ptr<AnyOptions> make_options() {
  return std::make_unique<OptionsOf<O>>();
}

/// The O inside; the registry guarantees that an entry's `make` is called with its own options.
template <class O>
const O& options_as(const AnyOptions& options) {
  return static_cast<const OptionsOf<O>&>(options).value;
}
template <class O>
O& options_as(AnyOptions& options) {
  return static_cast<OptionsOf<O>&>(options).value;
}

template <class Entry>
std::vector<std::string> names_of(const std::vector<Entry>& table) {
  std::vector<std::string> names;
  for (const Entry& entry : table) names.push_back(entry.name);
  return names;
}

/// An entry of an explicit table; explicit because static-initialiser registration is dropped from static archives.
/// Entry needs a field `name`. ConfigError with unknown_name() for a name of none.
template <class Entry>
const Entry& find_entry(const std::vector<Entry>& table, const std::string& name, const std::string& what) {
  for (const Entry& entry : table)
    if (entry.name == name) return entry;
  throw ConfigError(unknown_name(what, name, names_of(table)));
}

}  // namespace basin
