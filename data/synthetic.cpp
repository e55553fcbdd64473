#include <random>

#include "core/hash.h"
#include "core/seed.h"
#include "data/readers.h"

namespace basin {
namespace {

constexpr int64_t kClasses = 10, kChannels = 3, kSide = 32, kBlock = 8, kPixels = kChannels * kSide * kSide;

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
  split.images = at::empty({n, kChannels, kSide, kSide}, at::kByte);
  split.source_index = at::arange(n, at::kLong);
  split.labels = at::remainder(split.source_index, kClasses);
  auto* pixel = split.images.data_ptr<uint8_t>();
  for (int64_t i = 0; i < n; ++i) {
    const int* prototype = prototypes.data() + (i % kClasses) * kPixels;
    for (int64_t p = 0; p < kPixels; ++p) {
      const int first = bytes.next(), second = bytes.next();
      *pixel++ = static_cast<uint8_t>(prototype[p] + (first + second) / 4 - 64);  // within 40..214
    }
  }
  return split;
}

}  // namespace

Dataset make_synthetic(int64_t train_examples, int64_t test_examples) {
  const std::vector<int> prototypes = draw_prototypes();
  Dataset data;
  data.name = "synthetic";
  data.pixels = "synthetic";
  for (int64_t c = 0; c < kClasses; ++c) data.class_names.push_back(fmt::format("class{}", c));
  data.train = draw_split(train_examples, prototypes, 1);
  data.test = draw_split(test_examples, prototypes, 2);
  Sha256 hash;
  for (const Split* split : {&data.train, &data.test}) {
    hash.update(split->labels.data_ptr<int64_t>(), split->labels.nbytes());
    hash.update(split->images.data_ptr<uint8_t>(), split->images.nbytes());
  }
  data.sha256 = hash.hex_digest();
  return data;
}

}  // namespace basin
