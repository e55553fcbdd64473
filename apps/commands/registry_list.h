// defines: print_list(): the contents of the registries, which studies can name, as text or JSON.
#pragma once

#include <string>
#include <vector>

namespace basin {

/// What print_list() takes: "models", "optimizers", ...
const std::vector<std::string>& list_names();

/// Prints the members in the order of their registry, each with its help and its options at their defaults.
/// With `json`, prints a document (docs/json.md) with `entries`:
///   member  {name, label, help, order, traits: {...}, options: [...]}; probes add what ProbeEntry
///           says about their quantities;
///           hooks and landscapes have no label; hooks add summary: [{name, units, long_name, definition}]
///   option  {key, help, type, default, constraint, role, sweep, tune}; the lists "schedules" and "options"
///           hold only these
void print_list(const std::string& name, bool json);

}  // namespace basin
