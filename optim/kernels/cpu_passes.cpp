#include "optim/kernels/cpu_passes.h"

#include <algorithm>
#include <array>

#include "core/math/lane_sum.h"
#include "core/math/parallel_chunks.h"
#include "core/math/wide_registers.h"

namespace basin {
namespace {

constexpr int64_t kChunk = 1 << 16;  // elements whose sums are one summand
constexpr int kBlock = 256;          // elements held in float64 at a time: stays in the first cache

using Block = std::array<double, kBlock>;

double sum_of_squares(const Block& x, int n) {
  const double* values = x.data();
  return lane_sum(n, [values](int64_t i) { return values[i] * values[i]; });
}

/// A stretch of one tensor list, null where the list is empty or isn't read.
template <class T>
struct Stretch {
  T* data = nullptr;
  void load(Block& block, int64_t first, int n) const {
    for (int i = 0; i < n; ++i) block[static_cast<size_t>(i)] = static_cast<double>(data[first + i]);
  }
  void store(const Block& block, int64_t first, int n) const {
    for (int i = 0; i < n; ++i) data[first + i] = static_cast<T>(block[static_cast<size_t>(i)]);
  }
};

template <class T>
struct Memory {
  Stretch<T> w, g, first, second;
};

template <class T>
Stretch<T> stretch(const std::vector<at::Tensor>& list, size_t i) {
  return {list.empty() ? nullptr : list[i].mutable_data_ptr<T>()};
}

template <class T>
Memory<T> memory(const TensorLists& lists, size_t i) {
  return {stretch<T>(lists.weights, i), stretch<T>(lists.gradients, i), stretch<T>(lists.first, i),
          stretch<T>(lists.second, i)};
}

void add(TensorSums& to, const TensorSums& part) {
  to.weight += part.weight;
  to.gradient += part.gradient;
  to.direction += part.direction;
  to.change += part.change;
}

struct Chunk {
  size_t tensor;
  int64_t first, last;
};

std::vector<Chunk> chunks_of(const std::vector<at::Tensor>& tensors) {
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (int64_t first = 0; first < tensors[i].numel(); first += kChunk)
      chunks.push_back({i, first, std::min(first + kChunk, tensors[i].numel())});
  }
  return chunks;
}

/// pass(memory, element, first place, number of elements, sums) for every block of the chunk.
template <class T, class Element, class Pass>
TensorSums over_chunk(const TensorLists& lists, const Element& element, const Chunk& chunk,
                      const Pass& pass) {
  const Memory<T> where = memory<T>(lists, chunk.tensor);
  TensorSums sums;
  with_wide_registers([&] {
    for (int64_t i = chunk.first; i < chunk.last; i += kBlock)
      pass(where, element, i, static_cast<int>(std::min<int64_t>(kBlock, chunk.last - i)), sums);
  });
  return sums;
}

template <class Element, class Pass>
PassSums over_blocks(const TensorLists& lists, const std::vector<Element>& elements, const Pass& pass) {
  const std::vector<Chunk> chunks = chunks_of(lists.weights);
  std::vector<TensorSums> parts(chunks.size());
  const auto run_chunk = [&](int64_t number) {
    const Chunk& chunk = chunks[static_cast<size_t>(number)];
    const Element& element = elements[chunk.tensor];
    parts[static_cast<size_t>(number)] = lists.weights[chunk.tensor].scalar_type() == at::kDouble
                                             ? over_chunk<double>(lists, element, chunk, pass)
                                             : over_chunk<float>(lists, element, chunk, pass);
  };
  int64_t count = 0;
  for (const at::Tensor& tensor : lists.weights) count += tensor.numel();
  for_each_chunk(static_cast<int64_t>(chunks.size()), count, run_chunk);
  PassSums sums(lists.weights.size());
  for (size_t i = 0; i < chunks.size(); ++i) add(sums[chunks[i].tensor], parts[i]);
  return sums;
}

/// w, g and d of a block, with their sums.
struct Directions {
  Block w, g, d;
  template <class T>
  void load(const Memory<T>& at, const MomentumElement<double>& element, int64_t first, int n,
            TensorSums& sums) {
    at.w.load(w, first, n);
    at.g.load(g, first, n);
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) d[i] = element.direction(w[i], g[i]);
    sums.weight += sum_of_squares(w, n);
    sums.gradient += sum_of_squares(g, n);
  }
};

/// w, the moments and u of a block, with their sums.
struct MomentDirections {
  Block w, m, v, u;
  template <class T>
  void load(const Memory<T>& at, int64_t first, int n) {
    at.w.load(w, first, n);
    at.first.load(m, first, n);
    at.second.load(v, first, n);
  }
  template <class T>
  void advance(const Memory<T>& at, const MomentElement<double>& element, int64_t first, int n,
               TensorSums& sums) {
    Block g;
    at.g.load(g, first, n);
    sums.gradient += sum_of_squares(g, n);
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
      const double d = element.corrected_gradient(w[i], g[i]);
      m[i] = element.next_first(m[i], d);
      v[i] = element.next_second(v[i], d);
    }
    at.first.store(m, first, n);
    at.second.store(v, first, n);
  }
  /// Root and division in the weights' own type, for they take half the time of an update: of float32 an
  /// error of some 1e-7 in each element of u, as a float32 state brings anyway. From the moments as they are
  /// stored.
  template <class T>
  void direct(const Memory<T>& /*at*/, const MomentElement<double>& element, int n, TensorSums& sums) {
    MomentElement<T> narrow;
    narrow.second = static_cast<T>(element.second);
    narrow.eps = static_cast<T>(element.eps);
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
      const T r = narrow.normalised(static_cast<T>(m[i]), static_cast<T>(v[i]));
      u[i] = static_cast<double>(r) + element.decay * w[i];
    }
    sums.weight += sum_of_squares(w, n);
    sums.direction += sum_of_squares(u, n);
  }
  template <class T>
  void apply(const Memory<T>& at, const MomentElement<double>& element, int64_t first, int n,
             TensorSums& sums) {
    Block change;
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
      change[i] = element.change(w[i], u[i]);
      w[i] -= change[i];
    }
    at.w.store(w, first, n);
    sums.change += sum_of_squares(change, n);
  }
};

}  // namespace

PassSums measure(const TensorLists& lists, const MomentumElements& elements) {
  return over_blocks(lists, elements,
                     [](const auto& at, const auto& element, int64_t first, int n, TensorSums& sums) {
                       Directions block;
                       block.load(at, element, first, n, sums);
                       sums.direction += sum_of_squares(block.d, n);
                     });
}

PassSums fill_buffer(const TensorLists& lists, const MomentumElements& elements) {
  return over_blocks(lists, elements,
                     [](const auto& at, const auto& element, int64_t first, int n, TensorSums& sums) {
                       Directions block;
                       block.load(at, element, first, n, sums);
                       Block v;
                       at.first.load(v, first, n);
                       for (size_t i = 0; i < static_cast<size_t>(n); ++i)
                         v[i] = element.next_buffer(v[i], block.d[i]);
                       at.first.store(v, first, n);
                       sums.direction += sum_of_squares(v, n);
                     });
}

PassSums update_momentum(const TensorLists& lists, const MomentumElements& elements) {
  return over_blocks(lists, elements,
                     [](const auto& at, const auto& element, int64_t first, int n, TensorSums& sums) {
                       Directions block;
                       block.load(at, element, first, n, sums);
                       Block v, change;
                       if (at.first.data == nullptr) {
                         v.fill(0);
                       } else {
                         at.first.load(v, first, n);
                         for (size_t i = 0; i < static_cast<size_t>(n); ++i)
                           v[i] = element.next_buffer(v[i], block.d[i]);
                         at.first.store(v, first, n);
                       }
                       for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
                         change[i] = element.change(block.w[i], v[i], block.d[i]);
                         block.w[i] -= change[i];
                       }
                       at.w.store(block.w, first, n);
                       sums.change += sum_of_squares(change, n);
                     });
}

PassSums advance_moments(const TensorLists& lists, const MomentElements& elements) {
  return over_blocks(lists, elements,
                     [](const auto& at, const auto& element, int64_t first, int n, TensorSums& sums) {
                       MomentDirections block;
                       block.load(at, first, n);
                       block.advance(at, element, first, n, sums);
                       block.direct(at, element, n, sums);
                     });
}

PassSums apply_moments(const TensorLists& lists, const MomentElements& elements) {
  return over_blocks(lists, elements,
                     [](const auto& at, const auto& element, int64_t first, int n, TensorSums& sums) {
                       MomentDirections block;
                       block.load(at, first, n);
                       block.direct(at, element, n, sums);
                       block.apply(at, element, first, n, sums);
                     });
}

PassSums update_moments(const TensorLists& lists, const MomentElements& elements) {
  return over_blocks(lists, elements,
                     [](const auto& at, const auto& element, int64_t first, int n, TensorSums& sums) {
                       MomentDirections block;
                       block.load(at, first, n);
                       block.advance(at, element, first, n, sums);
                       block.direct(at, element, n, sums);
                       block.apply(at, element, first, n, sums);
                     });
}

}  // namespace basin
