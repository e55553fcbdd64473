// defines: print_list(), what the registries hold and studies can name, for people and as JSON.
#pragma once

#include <string>
#include <vector>

namespace basin {

/// What print_list() takes: "models", "optimizers", ...
const std::vector<std::string>& list_names();

/// Members with what they are for, in the order of their registry, each with its options at their defaults.
/// With `json` one array:
///   member  {name, label, help, order, traits: {...}, options: [...]}, of probes also what ProbeEntry says of its quantities;
///           those of hooks and landscapes have no label, those of hooks also summary: [{name, units, long_name, definition}]
///   option  {key, help, type, default, constraint, role, sweep, tune}; the lists "schedules" and "options" are of these
void print_list(const std::string& name, bool json);

}  // namespace basin
