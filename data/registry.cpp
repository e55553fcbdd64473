#include "data/registry.h"

#include <cstdlib>

#include "data/readers.h"

namespace basin {
namespace fs = std::filesystem;
namespace {

Dataset read_known(const DataOptions& o) { return read_set(manifest_of(o.set), o.path); }

Dataset read_embedded(const DataOptions& o) {
  const std::string folder = embedded_folder(o.set);
  if (!fs::is_directory(folder))
    throw DataError("missing data: the embedded set " + o.set + " is not in " + folder +
                    " (the build puts it there; BASIN_DATA names another place)");
  return read_set(manifest_of(o.set), folder);
}

Dataset draw_synthetic(const DataOptions& o) {
  return make_synthetic(o.train_examples > 0 ? o.train_examples : 512,
                        o.test_examples > 0 ? o.test_examples : 256);
}

Dataset draw_coin_flips(const DataOptions& o) {
  return make_coin_flips(o.train_examples > 0 ? o.train_examples : 8192,
                         o.test_examples > 0 ? o.test_examples : 256);
}

}  // namespace

const std::vector<DatasetEntry>& dataset_registry() {
  static const std::vector<DatasetEntry> table = {
      {"cifar10", "CIFAR-10 in its official binary layout: 50,000 / 10,000 images", true, false, read_known},
      {"cifar100", "CIFAR-100 in its official binary layout, fine labels: 50,000 / 10,000", true, false,
       read_known},
      {"fashion_mnist", "Fashion-MNIST's four idx files: 60,000 / 10,000 grey images", true, false,
       read_known},
      {"cifar10-5k", "embedded: the first 1,000 images of each official CIFAR-10 file, 5,000 / 1,000", false,
       false, read_embedded},
      {"synthetic", "ten block patterns in noise, 512 / 256 images unless sized, for tests", false, true,
       draw_synthetic},
      {"coin_flips", "256 coin flips per example, 8,192 / 256 unless sized, for the noisy quadratic model",
       false, true, draw_coin_flips},
  };
  return table;
}

std::string embedded_folder(const std::string& set) {
  if (const char* folder = std::getenv("BASIN_DATA"); folder != nullptr && *folder != '\0')
    return (fs::path(folder) / set).string();
  const fs::path program = fs::read_symlink("/proc/self/exe");
  return (program.parent_path().parent_path() / "share/basin/data" / set).string();
}

}  // namespace basin
