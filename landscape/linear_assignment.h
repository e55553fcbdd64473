// defines: best_assignment(), the linear assignment problem.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace basin {

/// The permutation p that maximises sum_i score[i][p_i]; score [n, n], all finite (NumericError otherwise).
/// Exact but for rounding, by shortest augmenting paths on reduced costs (Kuhn 1955; Jonker and Volgenant
/// 1987, Computing 38): rows are assigned one after the other, each along the cheapest alternating path,
/// found by Dijkstra's method because the potentials keep all reduced costs non-negative. Where several
/// permutations are best, which one comes out is fixed by the order of rows and columns.
///
/// Cost: O(n^3) in float64 on the host, 0.2 s for n = 512. Memory: the matrix.
std::vector<int64_t> best_assignment(const at::Tensor& score);

}  // namespace basin
