#include "data/example_stream.h"

#include <random>

#include "core/error.h"
#include "core/seed.h"

namespace basin {
namespace {

uint64_t draw_below(std::mt19937_64& engine, uint64_t bound) {
  const uint64_t excess = (std::mt19937_64::max() % bound + 1) % bound;  // 2^64 mod bound
  uint64_t r = engine();
  while (r > std::mt19937_64::max() - excess) r = engine();
  return r % bound;
}

}  // namespace

ExampleStream::ExampleStream(uint64_t master_seed, int64_t n) : master_seed_(master_seed), n_(n) {
  if (n < 1) throw ConfigError(fmt::format("cannot train on {} examples", n));
}

const std::vector<int64_t>& ExampleStream::permutation(int64_t epoch) {
  if (epoch == cached_epoch_) return cached_;
  std::mt19937_64 engine(derive_seed(master_seed_, "data-order", static_cast<uint64_t>(epoch)));
  cached_.resize(static_cast<size_t>(n_));
  std::iota(cached_.begin(), cached_.end(), 0);
  for (size_t i = cached_.size() - 1; i > 0; --i) std::swap(cached_[i], cached_[draw_below(engine, i + 1)]);
  cached_epoch_ = epoch;
  return cached_;
}

Batch ExampleStream::slice(int64_t start, int64_t count, bool merge_duplicates) {
  TORCH_CHECK(start >= 0 && count >= 0, "a slice of the stream starts and ends at or after 0");
  Batch batch;
  batch.size = count;
  // Within one epoch nothing comes up twice.
  const bool merging = merge_duplicates && count > 0 && start / n_ != (start + count - 1) / n_;
  const auto expected = static_cast<size_t>(merging ? std::min(count, n_) : count);
  for (auto* column : {&batch.examples, &batch.counts, &batch.positions}) column->reserve(expected);
  if (merging && slot_.empty()) slot_.assign(static_cast<size_t>(n_), -1);
  for (int64_t position = start; position < start + count; ++position) {
    const int64_t example = permutation(position / n_)[static_cast<size_t>(position % n_)];
    if (merging) {
      int64_t& slot = slot_[static_cast<size_t>(example)];
      if (slot >= 0) {
        ++batch.counts[static_cast<size_t>(slot)];
        continue;
      }
      slot = static_cast<int64_t>(batch.examples.size());
    }
    batch.examples.push_back(example);
    batch.counts.push_back(1);
    batch.positions.push_back(position);
  }
  if (merging)
    for (const int64_t example : batch.examples) slot_[static_cast<size_t>(example)] = -1;
  return batch;
}

}  // namespace basin
