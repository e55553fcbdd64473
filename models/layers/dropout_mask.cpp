#include "models/layers/dropout_mask.h"

#include "core/math/parallel_chunks.h"
#include "core/math/philox.h"

namespace basin {
namespace {

uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t high(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

}  // namespace

at::Tensor dropout_mask(at::IntArrayRef sizes, double p, uint64_t key, const DropoutPlace& place) {
  constexpr int64_t kWords = int64_t{1} << 32;
  const at::Tensor mask = at::empty(sizes, at::kByte);
  if (mask.numel() == 0) return mask;
  const int64_t examples = mask.size(0), elements = mask.numel() / examples;
  TORCH_CHECK(place.first + examples <= kWords && elements / 4 < kWords, "more masks than counters");
  const auto update = static_cast<uint64_t>(place.update);
  const double limit = p * static_cast<double>(kWords);
  auto* const kept = mask.mutable_data_ptr<uint8_t>();
  for_each_chunk(examples, mask.numel(), [&](int64_t i) {
    const auto position = static_cast<uint32_t>(place.first + i);
    for (int64_t e = 0; e < elements; e += 4) {
      const auto words =
          philox({static_cast<uint32_t>(e / 4), position, low(update), high(update)}, {low(key), high(key)});
      for (int64_t j = e; j < std::min(e + 4, elements); ++j)
        kept[i * elements + j] = static_cast<double>(words[static_cast<size_t>(j - e)]) >= limit ? 1 : 0;
    }
  });
  return mask;
}

}  // namespace basin
