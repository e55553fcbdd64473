#include "core/math/parallel_chunks.h"

#include <ATen/TensorIterator.h>

namespace basin {

void for_each_chunk(int64_t n, int64_t elements, const std::function<void(int64_t)>& f) {
  if (elements < kWorthThreads) {
    for (int64_t i = 0; i < n; ++i) f(i);
    return;
  }
  // Torch cuts a loop over tensors among its threads; this tensor's elements are the numbers of our chunks.
  at::Tensor numbers = at::arange(n, at::kLong);
  at::TensorIterator loop = at::TensorIterator::borrowing_nullary_op(numbers);
  loop.for_each(
      [&f](char** data, const int64_t* strides, int64_t count) {
        for (int64_t i = 0; i < count; ++i) f(*reinterpret_cast<const int64_t*>(data[0] + i * strides[0]));
      },
      /*grain_size=*/1);
}

}  // namespace basin
