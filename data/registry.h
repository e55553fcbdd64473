// defines: the table of data sets.
#pragma once

#include <string>
#include <vector>

#include "core/registry.h"
#include "data/dataset.h"

namespace basin {

struct DatasetEntry {
  std::string name;
  std::string help;
  bool needs_path;  // a folder or archive of the user's; the others refuse one
  bool any_size;    // train_examples and test_examples make it, instead of taking a part of it
  Dataset (*read)(
      const DataOptions& options);  // train and test as in the files, no validation share taken yet
};

/// cifar10, cifar100, fashion_mnist, cifar10-5k (embedded), synthetic, coin_flips. A new set is one reader
/// and one line here.
const std::vector<DatasetEntry>& dataset_registry();

/// Where cifar10-5k lies: $BASIN_DATA/cifar10-5k, else ../share/basin/data/cifar10-5k as seen from the
/// running program's folder.
std::string embedded_folder(const std::string& set);

}  // namespace basin
