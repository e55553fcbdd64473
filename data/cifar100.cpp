// CIFAR-100 with its fine labels.
#include "data/registry.h"

namespace basin {
namespace {

const std::vector<std::string> kCifar100Names = {
    "apple",      "aquarium_fish", "baby",         "bear",       "beaver",      "bed",         "bee",
    "beetle",     "bicycle",       "bottle",       "bowl",       "boy",         "bridge",      "bus",
    "butterfly",  "camel",         "can",          "castle",     "caterpillar", "cattle",      "chair",
    "chimpanzee", "clock",         "cloud",        "cockroach",  "couch",       "crab",        "crocodile",
    "cup",        "dinosaur",      "dolphin",      "elephant",   "flatfish",    "forest",      "fox",
    "girl",       "hamster",       "house",        "kangaroo",   "keyboard",    "lamp",        "lawn_mower",
    "leopard",    "lion",          "lizard",       "lobster",    "man",         "maple_tree",  "motorcycle",
    "mountain",   "mouse",         "mushroom",     "oak_tree",   "orange",      "orchid",      "otter",
    "palm_tree",  "pear",          "pickup_truck", "pine_tree",  "plain",       "plate",       "poppy",
    "porcupine",  "possum",        "rabbit",       "raccoon",    "ray",         "road",        "rocket",
    "rose",       "sea",           "seal",         "shark",      "shrew",       "skunk",       "skyscraper",
    "snail",      "snake",         "spider",       "squirrel",   "streetcar",   "sunflower",   "sweet_pepper",
    "table",      "tank",          "telephone",    "television", "tiger",       "tractor",     "train",
    "trout",      "tulip",         "turtle",       "wardrobe",   "whale",       "willow_tree", "wolf",
    "woman",      "worm"};

Manifest cifar100() {
  Manifest m;
  m.set = "cifar100";
  m.folder = "cifar-100-binary";
  m.files = {{"train.bin", false, 50000, FileRole::records}, {"test.bin", true, 10000, FileRole::records}};
  // Files: ankane/torchvision-ruby, datasets/cifar100.rb; archive: there, in MLDatasets.jl and gomlx.
  m.copies.push_back({"official",
                      {"f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29",
                       "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"}});
  m.label_bytes = {20, 100};  // coarse, fine
  m.names_file = "fine_label_names.txt";
  m.class_names = kCifar100Names;
  m.archive_url = "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz";
  m.archive_sha256 = "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec";
  return m;
}

}  // namespace

DatasetEntry cifar100_entry() {
  return published_set(
      {.label = "CIFAR-100", .help = "CIFAR-100 in its official binary layout, fine labels: 50,000 / 10,000"},
      cifar100());
}

}  // namespace basin
