// Choices by hash: they depend on the bytes of the examples and on nothing else.

#include "core/hash.h"
#include "data/dataset.h"

namespace basin {
namespace {

constexpr int64_t kLabelsOfAByte = 256;

/// Rows may overlap (data/text.cpp), so their distance isn't their size.
size_t bytes_per_row(const at::Tensor& rows) { return rows[0].nbytes(); }

const uint8_t* row_of(const at::Tensor& rows, int64_t example) {
  return static_cast<const uint8_t*>(rows.const_data_ptr()) +
         example * rows.stride(0) * static_cast<int64_t>(rows.element_size());
}

void add_example(Sha256& hash, const Split& split, int64_t example) {
  hash.update(row_of(split.inputs, example), bytes_per_row(split.inputs));
  const uint8_t* label = row_of(split.labels, example);  // little-endian
  const bool one_class = split.labels.dim() == 1;
  const bool fits_a_byte = one_class && split.labels.const_data_ptr<int64_t>()[example] < kLabelsOfAByte;
  hash.update(label, fits_a_byte ? 1 : bytes_per_row(split.labels));
}

}  // namespace

at::Tensor hashed_subset(const Split& split, int64_t count) {
  const int64_t n = split.size();
  if (count <= 0 || count >= n) return at::arange(n, at::kLong);
  std::vector<std::pair<std::string, int64_t>> order;  // equal examples: the first in the file first
  order.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    Sha256 hash;
    add_example(hash, split, i);
    order.emplace_back(hash.hex_digest(), i);
  }
  std::nth_element(order.begin(), order.begin() + count, order.end());
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < count; ++i) chosen.push_back(order[static_cast<size_t>(i)].second);
  std::sort(chosen.begin(), chosen.end());
  return at::tensor(chosen, at::kLong);
}

std::string subset_hash(const Split& split, const at::Tensor& index) {
  const at::Tensor rows = index.to(at::kLong).contiguous();
  const auto* example = rows.const_data_ptr<int64_t>();
  Sha256 hash;
  for (int64_t i = 0; i < rows.numel(); ++i) add_example(hash, split, example[i]);
  return hash.hex_digest();
}

std::pair<at::Tensor, at::Tensor> validation_share(const Split& split, double share) {
  std::vector<int64_t> inside, outside;
  for (int64_t i = 0; i < split.size(); ++i) {
    const std::string digest = sha256_hex(row_of(split.inputs, i), bytes_per_row(split.inputs));
    const uint64_t leading = std::stoull(digest.substr(0, 16), nullptr, 16);
    (std::ldexp(static_cast<double>(leading), -64) < share ? inside : outside).push_back(i);
  }
  return {at::tensor(inside, at::kLong), at::tensor(outside, at::kLong)};
}

Split take(const Split& split, const at::Tensor& index) {
  return {split.inputs.index_select(0, index), split.labels.index_select(0, index),
          split.source_index.index_select(0, index)};
}

}  // namespace basin
