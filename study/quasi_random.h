// defines: HaltonSequence, points that fill the unit cube evenly.
#pragma once

#include <cstdint>
#include <vector>

namespace basin {

/// Halton's sequence: coordinate j of point i is the radical inverse of i in the j-th prime base b,
///   i = sum_k d_k b^k  ->  x = sum_k pi_k(d_k) b^(-k-1),
/// with pi_k one random permutation of the digits for each base and place, the same for every point (A. B.
/// Owen, "A randomized Halton algorithm in R", arXiv:1706.02808, 2017). Any b^m consecutive points from a
/// multiple of b^m have one coordinate in each of b^m equal intervals; the first points of a longer sequence
/// are those of a shorter one. Coordinates lie in [0, 1). Cost: 53 digits a coordinate at most. Evenness
/// fades in later coordinates: some tens of points say little about more than three or four of them.
class HaltonSequence {
 public:
  /// seed 0: the plain sequence, every pi the identity; it begins at the origin. The same seed gives the same
  /// points on every platform.
  HaltonSequence(int64_t dimensions, int64_t seed);

  std::vector<double> point(int64_t index) const;

 private:
  struct Base {
    int64_t prime;
    std::vector<std::vector<int64_t>> permutations;  // by place; those left out are the identity
  };
  std::vector<Base> bases_;
};

}  // namespace basin
