// CIFAR-10, and the part of it that comes with Basin.
#include "data/registry.h"

namespace basin {
namespace {

const std::vector<std::string> kCifar10Names = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                "dog",      "frog",       "horse", "ship", "truck"};

Manifest cifar10() {
  Manifest m;
  m.set = "cifar10";
  m.folder = "cifar-10-batches-bin";
  for (int batch = 1; batch <= 5; ++batch)
    m.files.push_back({fmt::format("data_batch_{}.bin", batch), false, 10000, FileRole::records});
  m.files.push_back({"test_batch.bin", true, 10000, FileRole::records});
  // The files' hashes as torchvision's Ruby twin checks them (ankane/torchvision-ruby, datasets/cifar10.rb);
  // the archive's (MD5 c32a1d4a... on the authors' page) is also in MLDatasets.jl and gomlx.
  m.copies.push_back({"official",
                      {"cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
                       "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
                       "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
                       "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
                       "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
                       "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"}});
  // Official labels and order with JPEG-coded (quality 75) pixels: 7.6 of 255 away in the root mean square.
  // Computed from the files themselves.
  m.copies.push_back({"jpeg copy",
                      {"8da035fc1631e8ce5f25904206b8993b0f3ad02a504c0584d662e806fd76c12b",
                       "106eeaad9f1fa7a999292fdafe68ee909080f58aee038a76994035aedf40ba26",
                       "99cb88ba00fca88bf28c517a74307b6b78a346c6ea747a561cb8e660c787d5cb",
                       "76b482bc3bb79c0370e48ea71bb6e4f567a3770d224dc09a9ddc8cfa2369f294",
                       "490f5ead4f04a3eb71d5898eb551e0d8d2c592feb778fb9b109a006b3f231495",
                       "0ce179d0c0a5220739d6223197952896644ceabb648dacfdebd7f06789af543f"}});
  m.names_file = "batches.meta.txt";
  m.class_names = kCifar10Names;
  m.archive_url = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz";
  m.archive_sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd";
  return m;
}

/// The first 1,000 records of each of the six official CIFAR-10 files.
Manifest cifar10_5k() {
  Manifest m;
  m.set = "cifar10-5k";
  m.folder = "cifar-10-batches-bin";
  m.files = {{"data_batch_1.bin", false, 5000, FileRole::records},
             {"test_batch.bin", true, 1000, FileRole::records}};
  m.copies.push_back({"official",
                      {"85f5fb0e791e0236d5ba820c11a1a3196431cc3583f9e2eee0d8f4055194503d",
                       "8314c96d7cd65618193bab23acdd5d4c4af15bf6dd00a1781d55beedf3be1ef5"}});
  m.must_be_known = true;
  m.names_file = "batches.meta.txt";
  m.class_names = kCifar10Names;
  return m;
}

}  // namespace

DatasetEntry cifar10_entry() {
  return published_set(
      {.label = "CIFAR-10", .help = "CIFAR-10 in its official binary layout: 50,000 / 10,000 images"},
      cifar10());
}

DatasetEntry cifar10_5k_entry() {
  return embedded_set(
      {.label = "CIFAR-10, 5,000",
       .help = "embedded: the first 1,000 images of each official CIFAR-10 file, 5,000 / 1,000"},
      cifar10_5k());
}

}  // namespace basin
