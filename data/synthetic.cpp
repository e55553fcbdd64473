#include <random>

#include "core/hash.h"
#include "core/seed.h"
#include "data/readers.h"
#include "data/registry.h"

namespace basin {
namespace {

constexpr int64_t kClasses = 10, kChannels = 3, kSide = 32, kBlock = 8, kPixels = kChannels * kSide * kSide;
constexpr int64_t kCoins = 256;  // whole numbers of the engine: 4 of 64 bits

/// Bytes of a 64-bit Mersenne Twister, low byte first. The standard fixes the engine's numbers, not the
/// distributions'.
class ByteStream {
 public:
  explicit ByteStream(uint64_t index) : engine_(derive_seed(0, "synthetic", index)) {}
  int next() {
    if (left_ == 0) {
      word_ = engine_();
      left_ = 8;
    }
    const int byte = static_cast<int>(word_ & 0xff);
    word_ >>= 8;
    --left_;
    return byte;
  }

 private:
  std::mt19937_64 engine_;
  uint64_t word_ = 0;
  int left_ = 0;
};

std::vector<int> draw_prototypes() {
  ByteStream bytes(0);
  constexpr int64_t across = kSide / kBlock, blocks = kChannels * across * across;
  std::vector<int> level(kClasses * blocks), pixels(kClasses * kPixels);
  for (int& value : level) value = 104 + bytes.next() * 48 / 256;
  for (int64_t i = 0; i < kClasses * kPixels; ++i) {
    const int64_t x = i % kSide, y = i / kSide % kSide, plane = i / (kSide * kSide);
    pixels[static_cast<size_t>(i)] =
        level[static_cast<size_t>((plane * across + y / kBlock) * across + x / kBlock)];
  }
  return pixels;
}

Split draw_split(int64_t n, const std::vector<int>& prototypes, uint64_t stream_index) {
  ByteStream bytes(stream_index);
  Split split;
  split.inputs = at::empty({n, kChannels, kSide, kSide}, at::kByte);
  split.source_index = at::arange(n, at::kLong);
  split.labels = at::remainder(split.source_index, kClasses);
  auto* pixel = split.inputs.data_ptr<uint8_t>();
  for (int64_t i = 0; i < n; ++i) {
    const int* prototype = prototypes.data() + (i % kClasses) * kPixels;
    for (int64_t p = 0; p < kPixels; ++p) {
      const int first = bytes.next(), second = bytes.next();
      *pixel++ = static_cast<uint8_t>(prototype[p] + (first + second) / 4 - 64);  // within 40..214
    }
  }
  return split;
}

/// 64 coins of each number of the engine, its lowest bit first.
Split draw_flips(int64_t n, uint64_t stream_index) {
  std::mt19937_64 engine(derive_seed(0, "synthetic", stream_index));
  Split split;
  split.inputs = at::empty({n, kCoins, 1, 1}, at::kByte);
  split.source_index = at::arange(n, at::kLong);
  split.labels = at::zeros({n}, at::kLong);
  auto* pixel = split.inputs.data_ptr<uint8_t>();
  uint64_t word = 0;
  for (int64_t i = 0; i < n * kCoins; ++i, word >>= 1) {
    if (i % 64 == 0) word = engine();
    *pixel++ = (word & 1) != 0 ? 255 : 0;
  }
  return split;
}

Dataset made_here(const std::string& name, int64_t classes, Split train, Split test) {
  Dataset data;
  data.name = name;
  data.pixels = "synthetic";
  for (int64_t c = 0; c < classes; ++c) data.class_names.push_back(fmt::format("class{}", c));
  data.train = std::move(train);
  data.test = std::move(test);
  Sha256 hash;
  for (const Split* split : {&data.train, &data.test}) {
    hash.update(split->labels.data_ptr<int64_t>(), split->labels.nbytes());
    hash.update(split->inputs.data_ptr<uint8_t>(), split->inputs.nbytes());
  }
  data.sha256 = hash.hex_digest();
  return data;
}

}  // namespace

Dataset make_synthetic(int64_t train_examples, int64_t test_examples) {
  const std::vector<int> prototypes = draw_prototypes();
  return made_here("synthetic", kClasses, draw_split(train_examples, prototypes, 1),
                   draw_split(test_examples, prototypes, 2));
}

Dataset make_coin_flips(int64_t train_examples, int64_t test_examples) {
  return made_here("coin_flips", kCoins, draw_flips(train_examples, 3), draw_flips(test_examples, 4));
}

DatasetEntry synthetic_entry() {
  return {.name = "synthetic",
          .label = "synthetic",
          .help = "ten block patterns in noise, 512 / 256 images unless sized, for tests",
          .any_size = true,
          .read = [](const DataOptions& o) {
            return make_synthetic(o.train_examples > 0 ? o.train_examples : 512,
                                  o.test_examples > 0 ? o.test_examples : 256);
          }};
}

DatasetEntry coin_flips_entry() {
  return {.name = "coin_flips",
          .label = "coin flips",
          .help = "256 coin flips per example, 8,192 / 256 unless sized, for the noisy quadratic model",
          .any_size = true,
          .read = [](const DataOptions& o) {
            return make_coin_flips(o.train_examples > 0 ? o.train_examples : 8192,
                                   o.test_examples > 0 ? o.test_examples : 256);
          }};
}

}  // namespace basin
