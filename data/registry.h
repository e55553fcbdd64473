// defines: DatasetEntry and the table of data sets.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/registry.h"
#include "data/dataset.h"
#include "data/manifest.h"

namespace basin {

struct DatasetEntry {
  std::string name = {};
  std::string label = {};  // in figures and tables
  std::string help = {};
  bool needs_path = false;        // a folder or archive of the user's; the others refuse one
  bool takes_validation = false;  // read() takes the validation share, since neighbours have parts in common
  bool any_size = false;          // train_examples and test_examples make it, instead of taking a part of it
  std::optional<Manifest> manifest = {};  // of sets that lie in files
  /// Train and test as in the files, no validation share taken yet but where takes_validation says so.
  std::function<Dataset(const DataOptions&)> read = {};

  /// Whether `basin data import` can check and write it, and `basin data get` fetch it.
  bool can_be_imported() const { return needs_path && manifest; }
  bool can_be_fetched() const { return needs_path && manifest && !manifest->archive_url.empty(); }
};

/// The entry of a set whose files the user has, and of one that comes with the program, both named by the manifest.
DatasetEntry published_set(DatasetEntry entry, const Manifest& manifest);
DatasetEntry embedded_set(DatasetEntry entry, const Manifest& manifest);

/// In the order of lists. A new set is one file and one line in registry.cpp.
const std::vector<DatasetEntry>& dataset_registry();

/// ConfigError for a set that is made and not read from files.
const Manifest& manifest_of(const std::string& set);

/// Where an embedded set lies: $BASIN_DATA/SET, else ../share/basin/data/SET as seen from the running program's
/// folder.
std::string embedded_folder(const std::string& set);

}  // namespace basin
