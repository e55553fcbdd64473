// defines: for_each_piece(), examples in pieces whose numbers fit a cache.
#pragma once

#include <algorithm>
#include <cstdint>

namespace basin {

/// About the numbers that a core's own cache holds. Larger ones are read from memory by each operation anew.
inline constexpr int64_t kPieceNumbers = int64_t{1} << 18;

/// f(first, count) for one piece of examples after the other: as many as keep `numbers` an example within
/// kPieceNumbers, at least one.
template <class F>
void for_each_piece(int64_t examples, int64_t numbers, const F& f) {
  const int64_t piece = std::max<int64_t>(1, kPieceNumbers / std::max<int64_t>(1, numbers));
  for (int64_t first = 0; first < examples; first += piece) f(first, std::min(piece, examples - first));
}

}  // namespace basin
