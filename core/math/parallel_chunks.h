// defines: for_each_chunk(), a loop over torch's own threads.
#pragma once

#include <cstdint>
#include <functional>

namespace basin {

/// Numbers that a loop should touch in all before threads are woken for it, which costs some microseconds.
inline constexpr int64_t kWorthThreads = 1 << 15;

/// f(i) for every i in [0, n), each once; f must not throw. From kWorthThreads `elements` on in no order on
/// torch's intra-op threads, below as a plain loop. at::parallel_for would always be one in our files: it is a
/// template that needs OpenMP in the file that calls it, and a second OpenMP runtime next to the one that torch
/// brings would fight it.
void for_each_chunk(int64_t n, int64_t elements, const std::function<void(int64_t)>& f);

}  // namespace basin
