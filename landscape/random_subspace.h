// defines: RandomSubspace, the column space of a random n x p matrix A.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace basin {

/// gaussian: entries N(0, 1), so |A y| is about sqrt(n) |y|.  orthonormal: A'A = I, the Q of such a matrix,
/// |A y| = |y|. The two differ by about sqrt(n) in step length: numbers taken with one are never compared
/// with the other's.
enum class SubspaceDistribution { gaussian, orthonormal };

const char* to_string(SubspaceDistribution distribution);
SubspaceDistribution subspace_distribution(const std::string& name);  // ConfigError for anything else

/// A in R^{n x p} from a seed, p <= n, held in the given type on the given device: n p numbers. Drawn in
/// float64, so float32 holds the rounded entries of the same matrix. ConfigError above 8 GiB.
class RandomSubspace {
 public:
  RandomSubspace(int64_t n, int64_t p, SubspaceDistribution distribution, uint64_t seed, at::ScalarType dtype,
                 at::Device device);

  int64_t size() const { return matrix_.size(0); }
  int64_t dimension() const { return matrix_.size(1); }
  const at::Tensor& matrix() const { return matrix_; }

  at::Tensor expand(const at::Tensor& y) const;   // A y
  at::Tensor project(const at::Tensor& g) const;  // A' g
  /// A^+ x = (A'A)^{-1} A'x in float64 on the host, by an LDLT factorisation of the p x p Gram matrix.
  at::Tensor coordinates(const at::Tensor& x) const;

 private:
  at::Tensor matrix_;
};

}  // namespace basin
