// defines: EnumNames, the texts that an enum's values have in files.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace basin {

/// One table for both ways. `what` is what the values are, for errors: "run status".
template <class Enum>
class EnumNames {
 public:
  EnumNames(std::string what, std::vector<std::pair<Enum, const char*>> names)
      : what_(std::move(what)), names_(std::move(names)) {}

  const char* text(Enum value) const {
    for (const auto& [known, name] : names_)
      if (known == value) return name;
    throw std::logic_error("a " + what_ + " without a name");
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    for (const auto& [value, name] : names_) all.emplace_back(name);
    return all;
  }
  /// Nothing for a text that no value has.
  std::optional<Enum> find(const std::string& text) const {
    for (const auto& [value, name] : names_)
      if (text == name) return value;
    return std::nullopt;
  }
  /// IoError "WHERE: unknown WHAT "TEXT"; known: ..." for a text that no value has. `where`: the file.
  Enum value(const std::string& text, const std::string& where) const {
    if (const std::optional<Enum> found = find(text)) return *found;
    std::string known;
    for (const auto& [value, name] : names_) known += (known.empty() ? "" : ", ") + std::string(name);
    throw IoError(where + ": unknown " + what_ + " \"" + text + "\"; known: " + known);
  }

 private:
  std::string what_;
  std::vector<std::pair<Enum, const char*>> names_;
};

}  // namespace basin
