// Fashion-MNIST.
#include "data/registry.h"

namespace basin {
namespace {

const std::vector<std::string> kFashionNames = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

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

}  // namespace

DatasetEntry fashion_mnist_entry() {
  return published_set(
      {.label = "Fashion-MNIST", .help = "Fashion-MNIST's four idx files: 60,000 / 10,000 grey images"},
      fashion_mnist());
}

}  // namespace basin
