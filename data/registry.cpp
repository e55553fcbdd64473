#include "data/registry.h"

#include <cstdlib>

#include "core/error.h"
#include "data/readers.h"

namespace basin {
namespace fs = std::filesystem;

// One line for each, in the order of lists: NAME_entry() is a function of its own file.
// clang-format off
#define BASIN_DATASETS(entry) \
  entry(cifar10) \
  entry(cifar100) \
  entry(fashion_mnist) \
  entry(cifar10_5k) \
  entry(moby_dick) \
  entry(tinyshakespeare) \
  entry(text) \
  entry(arrays) \
  entry(synthetic) \
  entry(coin_flips)
// clang-format on

#define BASIN_DECLARE(name) DatasetEntry name##_entry();
BASIN_DATASETS(BASIN_DECLARE)

const std::vector<DatasetEntry>& dataset_registry() {
#define BASIN_MAKE(name) name##_entry(),
  static const std::vector<DatasetEntry> table{BASIN_DATASETS(BASIN_MAKE)};
  return table;
}

DatasetEntry published_set(DatasetEntry entry, const Manifest& manifest) {
  entry.name = manifest.set;
  entry.needs_path = true;
  entry.manifest = manifest;
  entry.takes_validation = manifest.is_text();
  entry.read = [manifest](const DataOptions& options) { return read_set(manifest, options.path, options); };
  return entry;
}

DatasetEntry embedded_set(DatasetEntry entry, const Manifest& manifest) {
  entry.name = manifest.set;
  entry.manifest = manifest;
  entry.takes_validation = manifest.is_text();
  entry.read = [manifest](const DataOptions& options) {
    const std::string folder = embedded_folder(manifest.set);
    if (!fs::is_directory(folder))
      throw DataError("missing data: the embedded set " + manifest.set + " is not in " + folder +
                      " (the build puts it there; BASIN_DATA names another place)");
    return read_set(manifest, folder, options);
  };
  return entry;
}

const Manifest& manifest_of(const std::string& set) {
  const DatasetEntry& entry = find_entry(dataset_registry(), set, "data set");
  if (!entry.manifest) throw ConfigError("data set \"" + set + "\" has no files to check or import");
  return *entry.manifest;
}

std::string embedded_folder(const std::string& set) {
  if (const char* folder = std::getenv("BASIN_DATA"); folder != nullptr && *folder != '\0')
    return (fs::path(folder) / set).string();
  const fs::path program = fs::read_symlink("/proc/self/exe");
  return (program.parent_path().parent_path() / "share/basin/data" / set).string();
}

}  // namespace basin
