// defines: how a study file's [tune], [[tune.range]] and selections are read.
#pragma once

#include <string>
#include <vector>

#include "study/study.h"

namespace basin {

/// "when.batch_size" with prefix "when": "batch_size"; empty for other keys.
std::string key_below(const std::string& key, const std::string& prefix);

/// The document without `learning_rate = "tuned"` at its top, which is no number; `where` then says where it stood.
TomlDocument without_tuned_rate(TomlDocument document, std::string& where);

/// `key` without "tune.". ConfigError for an unknown key, a wrong type, a value out of range.
void set_tune_option(TuneOptions& options, const std::string& key, const OptionValue& value,
                     const std::string& where);

/// One [[tune.range]]: `when` and a SearchRange of an option that may be searched: a number that tells runs
/// apart, and neither the seed nor what the trials are compared at (batch size, budget, target, data).
RangeRule read_range(const std::vector<TomlEntry>& entries, const std::string& where);

/// [[sweep.selected]] of a frozen study: tables with `when` and `set`.
std::vector<Rule> read_winners(const TomlTableArray& tables);
/// [[choice]] of a selection.toml.
std::vector<Rule> read_selection(const std::string& path);
/// As [[sweep.selected]].
std::string winners_toml(const std::vector<Rule>& winners);

}  // namespace basin
