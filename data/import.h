// defines: import_dataset() and fetch_archive(), what `basin data import` and `basin data get` do.
#pragma once

#include <cstdint>
#include <string>

#include "data/manifest.h"

namespace basin {

struct Imported {
  std::string pixels, sha256;  // as Dataset has them
  int64_t files = 0;
};

/// Reads a set from a folder or archive, checks counts, labels and hashes, and writes its files into the new
/// folder `out`, which appears whole or not at all. IoError where `out` exists and is not an empty folder.
Imported import_dataset(const Manifest& manifest, const std::string& source, const std::string& out);

/// IoError where `out` exists and is not an empty folder.
void require_new_folder(const std::string& out);

/// Fetches `url` into the file `path` with curl, or wget where there is no curl, and checks its SHA-256.
/// DataError in one line where neither program is there, the network or server fails, or the contents differ;
/// the file is then removed. Only `basin data get` calls it: nothing is downloaded behind the user's back.
void fetch_archive(const std::string& url, const std::string& sha256, const std::string& path);

}  // namespace basin
