// defines: for_each_chunk(), a loop over torch's own threads.
#pragma once

#include <cstdint>
#include <functional>

namespace basin {

/// f(i) for every i in [0, n), each once, in no order, on torch's intra-op threads; f must not throw.
/// at::parallel_for would be a plain loop in our files: it is a template that needs OpenMP in the file that
/// calls it, and a second OpenMP runtime beside the one that torch brings would fight it. Costs some
/// microseconds.
void for_each_chunk(int64_t n, const std::function<void(int64_t)>& f);

}  // namespace basin
