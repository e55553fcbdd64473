// defines: matrices with chosen singular values and vectors, for methods that precondition by matrices.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "core/seed.h"
#include "optim/optimizer.h"

namespace basin::testing {

/// I - 2 v v' / v'v.
inline at::Tensor reflection(int64_t size, uint64_t seed) {
  at::Generator generator = make_generator(seed);
  const at::Tensor v = at::empty({size, 1}, at::kDouble).normal_(0, 1, generator);
  return at::eye(size, at::kDouble) - 2 * at::mm(v, v.t()) / v.square().sum();
}

/// U diag(values) V' with U and V two reflections each; rows x columns, as many values as the smaller.
struct Factored {
  at::Tensor u, v;
  at::Tensor matrix(const std::vector<double>& values) const {
    return at::mm(at::mm(u, at::diag(at::tensor(values, at::kDouble))), v.t());
  }
};

inline Factored factored(int64_t rows, int64_t columns) {
  const int64_t n = std::min(rows, columns);
  return {at::mm(reflection(rows, 1), reflection(rows, 2)).narrow(1, 0, n),
          at::mm(reflection(columns, 3), reflection(columns, 4)).narrow(1, 0, n)};
}

inline ParameterInfo weight_of(const at::Tensor& values, const std::string& name = "fc.weight") {
  return {name, "fc", ParameterKind::weight, values.clone().requires_grad_(true)};
}

/// One step of the given rate along the given gradient.
inline void step(Optimizer& optimizer, const ParameterInfo& parameter, const at::Tensor& gradient,
                 double rate) {
  at::Tensor(parameter.tensor).mutable_grad() = gradient;
  optimizer.set_learning_rate(rate);
  optimizer.step();
}

}  // namespace basin::testing
