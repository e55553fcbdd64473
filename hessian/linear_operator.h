// defines: LinearOperator, a symmetric matrix known by its products; FunctionOperator.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "ranks/rank_group.h"

namespace basin {

class LinearOperator {
 public:
  virtual ~LinearOperator() = default;
  virtual int64_t size() const = 0;
  virtual at::ScalarType dtype() const = 0;
  virtual at::Device device() const = 0;
  /// y = A x for a flat x of size(), dtype() and device().
  virtual at::Tensor apply(const at::Tensor& x) = 0;
  /// Those that compute its products together, each with the same calls; what is made of the products can be divided among them.
  virtual const RankGroup& ranks() const { return RankGroup::alone(); }
};

/// Any function, for tests and for C++ users.
class FunctionOperator : public LinearOperator {
 public:
  FunctionOperator(int64_t size, at::ScalarType dtype, std::function<at::Tensor(const at::Tensor&)> function)
      : size_(size), dtype_(dtype), function_(std::move(function)) {}
  int64_t size() const override { return size_; }
  at::ScalarType dtype() const override { return dtype_; }
  at::Device device() const override { return at::kCPU; }
  at::Tensor apply(const at::Tensor& x) override { return function_(x); }

 private:
  int64_t size_;
  at::ScalarType dtype_;
  std::function<at::Tensor(const at::Tensor&)> function_;
};

}  // namespace basin
