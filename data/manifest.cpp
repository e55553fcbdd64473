#include "data/manifest.h"

#include "core/error.h"

namespace basin {
namespace {

const std::vector<std::string> kCifar10Names = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                "dog",      "frog",       "horse", "ship", "truck"};

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

const std::vector<std::string> kFashionNames = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

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

Manifest fashion_mnist() {
  Manifest m;
  m.set = "fashion_mnist";
  m.folder = "FashionMNIST/raw";  // where torchvision leaves it
  m.files = {{"train-images-idx3-ubyte.gz", false, 60000, FileRole::images},
             {"train-labels-idx1-ubyte.gz", false, 60000, FileRole::labels},
             {"t10k-images-idx3-ubyte.gz", true, 10000, FileRole::images},
             {"t10k-labels-idx1-ubyte.gz", true, 10000, FileRole::labels}};
  // Packed: next to the MD5s of Zalando's README in many public loaders, among them autonomio/datasets and
  // MLDatasets.jl. Unpacked: independent public loaders (make, Rust, Python) agree on them; those of the labels we
  // also computed from files with the published hash.
  m.copies.push_back({"official",
                      {"3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                       "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                       "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                       "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"},
                      {"c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                       "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                       "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                       "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"}});
  m.channels = 1;
  m.height = m.width = 28;
  m.class_names = kFashionNames;
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

const Manifest& manifest_of(const std::string& set) {
  static const std::vector<Manifest> all = {cifar10(), cifar100(), fashion_mnist(), cifar10_5k()};
  for (const Manifest& manifest : all)
    if (manifest.set == set) return manifest;
  throw ConfigError("data set \"" + set + "\" has no files to check or import");
}

}  // namespace basin
