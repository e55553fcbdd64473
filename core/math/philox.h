// defines: philox(), random numbers that are a function of a counter and a key.
#pragma once

#include <array>
#include <cstdint>

namespace basin {

/// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011, "Parallel random numbers: as easy as 1, 2, 3"): four words that
/// pass BigCrush for any sequence of counters under one key, and for any keys. Without state, so a draw depends neither on
/// what was drawn before it nor on who draws it. Cost: 20 multiplications for four words.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * counter[0], second = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

}  // namespace basin
