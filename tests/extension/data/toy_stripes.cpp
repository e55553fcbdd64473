// defines: the data set toy_stripes, for tests/python/extension/test_extension.py.
#include <ATen/ATen.h>

#include "core/hash.h"
#include "data/registry.h"

namespace basin {
namespace {

/// Class c of four is bright in the rows 8c to 8c + 7 of 3 x 32 x 32 images; image i is brighter by i mod 16.
Split stripes(int64_t count) {
  const at::Tensor number = at::arange(count, at::kLong), labels = number % 4;
  const at::Tensor row = at::arange(32, at::kLong).div(8, "floor").view({1, 1, 32, 1});
  const at::Tensor bright = row.eq(labels.view({-1, 1, 1, 1})).to(at::kLong) * 128;
  const at::Tensor images = (bright + (number % 16).view({-1, 1, 1, 1})).expand({count, 3, 32, 32});
  return {images.to(at::kByte).contiguous(), labels, number};
}

}  // namespace

DatasetEntry toy_stripes_entry() {
  return {.name = "toy_stripes",
          .label = "toy stripes",
          .help = "four classes of stripes, a toy",
          .any_size = true,
          .read = [](const DataOptions& options) {
            Dataset data;
            data.name = "toy_stripes";
            data.pixels = "synthetic";
            data.class_names = {"first", "second", "third", "fourth"};
            data.train = stripes(options.train_examples > 0 ? options.train_examples : 256);
            data.test = stripes(options.test_examples > 0 ? options.test_examples : 64);
            data.sha256 = sha256_hex(data.train.inputs.const_data_ptr(), data.train.inputs.nbytes());
            return data;
          }};
}

}  // namespace basin
