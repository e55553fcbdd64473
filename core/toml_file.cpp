#include "core/toml_file.h"

#include <toml++/toml.h>
#include <sstream>

#include "core/error.h"
#include "core/files.h"

namespace basin {
namespace {

std::string place(const std::string& file, const toml::node& node) {
  return fmt::format("{}:{}", file, node.source().begin.line);
}

template <class T>
std::vector<T> elements(const toml::array& array) {
  std::vector<T> out;
  for (const toml::node& element : array) out.push_back(element.ref<T>());
  return out;
}

OptionValue list_value(const toml::array& array, const std::string& where) {
  if (array.empty()) return std::vector<double>{};
  if (array.is_homogeneous<int64_t>()) return elements<int64_t>(array);
  if (array.is_homogeneous<std::string>()) return elements<std::string>(array);
  std::vector<double> numbers;
  for (const toml::node& element : array) {
    if (!element.is_number())
      throw ConfigError(where + ": a list holds either numbers or strings and nothing else");
    numbers.push_back(element.value_or(0.0));
  }
  return numbers;
}

OptionValue plain_value(const toml::node& node, const std::string& where) {
  if (const auto v = node.value_exact<bool>()) return *v;
  if (const auto v = node.value_exact<int64_t>()) return *v;
  if (const auto v = node.value_exact<double>()) {
    if (std::isnan(*v)) throw ConfigError(where + ": nan is not a value");
    return *v;
  }
  if (const auto v = node.value_exact<std::string>()) return *v;
  if (const auto* array = node.as_array()) return list_value(*array, where);
  throw ConfigError(where + ": dates and times are not used here");
}

void flatten(const toml::table& table, const std::string& prefix, const std::string& file,
             std::vector<TomlEntry>& entries, std::vector<TomlTableArray>* arrays) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    const std::string where = place(file, node);
    if (const auto* inner = node.as_table()) {
      flatten(*inner, key + ".", file, entries, arrays);
    } else if (const auto* array = node.as_array();
               array && !array->empty() && array->is_homogeneous<toml::table>()) {
      if (!arrays) throw ConfigError(where + ": a list of tables cannot be inside another");
      TomlTableArray& out = arrays->emplace_back();
      out.key = key;
      for (const toml::node& element : *array) {
        flatten(*element.as_table(), "", file, out.tables.emplace_back(), nullptr);
        out.where.push_back(place(file, element));
      }
    } else {
      entries.push_back({key, plain_value(node, where), where});
    }
  }
}

int line_of(const std::string& where) { return std::stoi(where.substr(where.rfind(':') + 1)); }

/// toml++ keeps tables sorted by key; messages and rules follow the file's own order.
void sort_by_line(std::vector<TomlEntry>& entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const TomlEntry& a, const TomlEntry& b) {
    return line_of(a.where) < line_of(b.where);
  });
}

toml::table parsed(const std::string& text, const std::string& file_name) {
  try {
    return toml::parse(text, file_name);
  } catch (const toml::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}: {}", file_name, error.source().begin.line, error.description()));
  }
}

}  // namespace

TomlDocument parse_toml(const std::string& text, const std::string& file_name) {
  const toml::table root = parsed(text, file_name);
  TomlDocument document;
  flatten(root, "", file_name, document.entries, &document.table_arrays);
  sort_by_line(document.entries);
  for (TomlTableArray& array : document.table_arrays)
    for (auto& table : array.tables) sort_by_line(table);
  return document;
}

TomlDocument read_toml(const std::string& path) { return parse_toml(read_file(path), path); }

TomlTableArray read_toml_tables(const std::string& path, const std::string& key,
                                const std::vector<std::string>& parts) {
  const toml::table root = parsed(read_file(path), path);
  TomlTableArray out;
  out.key = key;
  const toml::array* const array = root[key].as_array();
  if (array == nullptr || !array->is_homogeneous<toml::table>()) return out;
  for (const toml::node& element : *array) {
    std::vector<TomlEntry>& entries = out.tables.emplace_back();
    out.where.push_back(place(path, element));
    for (const std::string& part : parts) {
      const toml::table* const inner = (*element.as_table())[part].as_table();
      if (inner != nullptr) flatten(*inner, part + ".", path, entries, nullptr);
    }
    sort_by_line(entries);
  }
  return out;
}

}  // namespace basin
