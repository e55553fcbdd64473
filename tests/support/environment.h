// defines: environment(), what a test needs of its surroundings, and source_folder(), where the checkout is that tests
// read studies, documents and scripts of; Variables, an environment of a test's own.
#pragma once

#include <cstdlib>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

namespace basin::testing {

/// The value of a variable that must be set: ctest sets those whose names begin with BASIN_.
inline std::string environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (!value) throw std::runtime_error(name + " isn't set: run the tests by ctest");
  return value;
}

inline std::string source_folder() { return environment("BASIN_SOURCE_DIR"); }

/// Variables with these values, or unset (nullopt), as long as it lives.
class Variables {
 public:
  explicit Variables(const std::map<std::string, std::optional<std::string>>& values) {
    for (const auto& [name, value] : values) {
      const char* before = std::getenv(name.c_str());
      before_[name] = before ? std::optional<std::string>(before) : std::nullopt;
      put(name, value);
    }
  }
  ~Variables() {
    for (const auto& [name, value] : before_) put(name, value);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  static void put(const std::string& name, const std::optional<std::string>& value) {
    if (value) {
      ::setenv(name.c_str(), value->c_str(), 1);
    } else {
      ::unsetenv(name.c_str());
    }
  }
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace basin::testing
