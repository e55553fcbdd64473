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
  Dataset (*read)(const DataOptions& options);  // train and test as in the files, no validation share taken yet
};

/// cifar10, cifar100, fashion_mnist, cifar10-5k (embedded), synthetic.
const std::vector<DatasetEntry>& dataset_registry();

}  // namespace basin
