// defines: wide_loop(), a loop at a stated width of vector registers, built as our own loops are.
#pragma once

#include <vector>

namespace basin::testing {

/// x y + z / sqrt(x x + 1), element by element, by wide::run() with registers of `width` bits; empty where
/// run() refuses the width. A file of its own: basin_loops() gives it the flags of our loops, under which gcc
/// uses vector registers, and the tests' -O1 doesn't.
std::vector<double> wide_loop(int width, const std::vector<double>& x, const std::vector<double>& y,
                              const std::vector<double>& z);

}  // namespace basin::testing
