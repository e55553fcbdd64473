// defines: KroneckerOptimizer, what Shampoo and SOAP share: a matrix of statistics for each dimension of a tensor.
#pragma once

#include <string>
#include <vector>

#include "core/math/kronecker.h"
#include "optim/optimizer.h"

namespace basin {

/// A tensor [n_1, ..., n_k] has a statistic S_i, G_(i) G_(i)' summed or averaged over gradients, for each dimension i that the derived
/// class says, and matrices that follow from it. They are slots "statistic0/fc.weight", by dimension, [n_i, n_i] or, where the
/// derived class keeps no more than its diagonal, [n_i]. A tensor without dimensions is one of [1].
class KroneckerOptimizer : public Optimizer {
 public:
  using Optimizer::Optimizer;

 protected:
  /// Shapes of one parameter's matrices by dimension; an empty shape where it has none.
  using Shapes = std::vector<std::vector<int64_t>>;
  /// Declares the two families, by parameter and dimension. After all other slots.
  void add_families(const std::string& statistic, const std::vector<Shapes>& of_statistic,
                    const std::string& derived, const std::vector<Shapes>& of_derived);
  /// Those of parameter i and a dimension; without elements where there are none.
  at::Tensor& statistic(size_t i, size_t dimension) { return slot(first_ + 2 * dimension)[i]; }
  at::Tensor& derived(size_t i, size_t dimension) { return slot(first_ + 2 * dimension + 1)[i]; }
  const at::Tensor& derived(size_t i, size_t dimension) const { return slot(first_ + 2 * dimension + 1)[i]; }
  /// The derived ones of parameter i that are matrices.
  KroneckerFactors factors(size_t i) const;
  static std::vector<int64_t> sizes_of(const at::Tensor& tensor);

 private:
  size_t first_ = 0;
};

}  // namespace basin
