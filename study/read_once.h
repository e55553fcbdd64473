// defines: ReadOnce, what a file has to say, read once while the file stays as it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>

#include "core/error.h"

namespace basin {

/// A study is expanded several times, and many cells may name one file. T: what is kept of it.
template <class T>
class ReadOnce {
 public:
  /// read(path), or what it returned before. IoError `missing` where there is no such file.
  template <class F>
  const T& operator()(const std::string& path, const std::string& missing, const F& read) {
    std::error_code none;
    const auto size = std::filesystem::file_size(path, none);
    if (none) throw IoError(path + ": missing: " + missing);
    const std::filesystem::file_time_type changed = std::filesystem::last_write_time(path);
    const Version key{path, size, changed};
    const auto found = known_.find(key);
    return found != known_.end() ? found->second : known_[key] = read(path);
  }

 private:
  using Version = std::tuple<std::string, std::uintmax_t, std::filesystem::file_time_type>;
  std::map<Version, T> known_;
};

}  // namespace basin
