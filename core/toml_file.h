// defines: TomlEntry lists of a TOML text, with line numbers; the only place that knows toml++.
#pragma once

#include <string>
#include <vector>

#include "core/option_value.h"

namespace basin {

/// One value of a TOML file: dotted key, value, and "file:line" for messages.
struct TomlEntry {
  std::string key;
  OptionValue value;
  std::string where;
};

/// An array of tables ([[sweep.set]]), one flat list of entries a table; keys are relative to the table.
struct TomlTableArray {
  std::string key;  // "sweep.set"
  std::vector<std::vector<TomlEntry>> tables;
  std::vector<std::string> where;
};

struct TomlDocument {
  std::vector<TomlEntry> entries;  // all plain values, in file order, keys dotted
  std::vector<TomlTableArray> table_arrays;
};

/// Empty arrays read as std::vector<double>{}; mixed arrays, dates and NaN are refused. Throws ConfigError with the line.
TomlDocument parse_toml(const std::string& text, const std::string& file_name);
TomlDocument read_toml(const std::string& path);

/// Reads a file that holds what parse_toml() refuses (lists of lists, NaN): the tables of the array `key`, and of each
/// only the entries of the inner tables `parts`. Empty where the file has no such array.
TomlTableArray read_toml_tables(const std::string& path, const std::string& key,
                                const std::vector<std::string>& parts);

}  // namespace basin
