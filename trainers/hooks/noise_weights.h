// defines: NoiseUnits, noise_strength(), noise_weights() and NoiseDraws: the noise of a small batch as weights of examples.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace basin {

/// What of a batch has one random number: m distinct examples with counts k_x, or the ghost batches, with k = 1.
struct NoiseUnits {
  std::vector<int64_t> counts;
  /// B = sum k.
  int64_t size() const;
  /// B^2 / sum k^2, how many independent examples the batch is worth; m where no example is repeated.
  double effective() const;
};

/// s with which the weights below have the noise of a batch of b:  s^2 = m^2/(m-1) (1/b - 1/n_eff).  0 where b = n_eff to rounding.
/// b > n_eff is the caller's to refuse: NaN.
double noise_strength(const NoiseUnits& units, double b);

/// a_x = k_x/B + s (xi_x - mean xi)/m, one for each unit; mean xi over the m units.
///
/// Cov(a) = (s/m)^2 (I - 11'/m) for independent xi of variance 1. Without repeats s^2 = n(n-b)/(b(n-1)), and the covariance of
/// sum a_x g_x given the batch is (n-b)/(b(n-1)) Sigma, Sigma = 1/n sum (g_x - mean g)(g_x - mean g)': exactly that of the mean of b
/// drawn from its n without replacement. Without the centring s^2/n gg' would be added. The total, over the draw of the batch from N, is
/// (N-b)/(b(N-1)) Sigma_N, that of real batches of b from N. With unequal k_x the shape is that of the distinct examples with equal
/// shares, the size that of n_eff.
std::vector<double> noise_weights(const NoiseUnits& units, const std::vector<double>& xi, double s);

/// Independent numbers of mean 0 and variance 1 that are functions of (seed, update, unit) alone: by philox, so neither micro-batches
/// nor a resumed run change them.
class NoiseDraws {
 public:
  NoiseDraws(uint64_t seed, const char* stream, bool rademacher);
  double at(int64_t update, int64_t unit) const;

 private:
  std::array<uint32_t, 2> key_;
  bool rademacher_;
};

}  // namespace basin
