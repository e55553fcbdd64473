#include "optim/kernels/cpu_passes.h"

#include <algorithm>
#include <type_traits>

#include "core/math/lane_sum.h"
#include "core/math/parallel_chunks.h"
#include "core/math/wide_registers.h"

namespace basin {
namespace {

constexpr int64_t kChunk = 1 << 16;  // elements whose sums are one summand
// Elements whose squares are added side by side before they join their chunk's sum.
constexpr int64_t kBlock = 256;

/// Where a tensor lies; null where a list is empty.
template <class T>
struct Memory {
  T *w, *g, *first, *second;
};

template <class T>
T* start_of(const std::vector<at::Tensor>& list, size_t i) {
  return list.empty() ? nullptr : list[i].mutable_data_ptr<T>();
}

template <class T>
Memory<T> memory(const TensorLists& lists, size_t i) {
  return {start_of<T>(lists.weights, i), start_of<T>(lists.gradients, i), start_of<T>(lists.first, i),
          start_of<T>(lists.second, i)};
}

/// What a pass saw of one element, whose squares are added; what it leaves at 0 isn't.
struct Seen {
  double weight = 0, gradient = 0, direction = 0, change = 0;
};

/// One sum of squares of a block.
template <bool wanted>
class SquareSum {
 public:
  void add(int64_t lane, double value) {
    if constexpr (wanted) sum_.add(lane, value * value);
  }
  void add_rest(double value) {
    if constexpr (wanted) sum_.add_rest(value * value);
  }
  double total() const { return sum_.total(); }

 private:
  LaneSum sum_;
};

struct Wanted {
  bool weight = false, gradient = false, direction = false, change = false;
};

constexpr Wanted of_an_update(Norms norms) {
  return {.weight = norms == Norms::all, .gradient = norms == Norms::all, .change = norms != Norms::none};
}

template <class Pass>
struct BlockSums {
  SquareSum<Pass::kSums.weight> weight;
  SquareSum<Pass::kSums.gradient> gradient;
  SquareSum<Pass::kSums.direction> direction;
  SquareSum<Pass::kSums.change> change;

  void add(int64_t lane, const Seen& seen) {
    weight.add(lane, seen.weight);
    gradient.add(lane, seen.gradient);
    direction.add(lane, seen.direction);
    change.add(lane, seen.change);
  }
  void add_rest(const Seen& seen) {
    weight.add_rest(seen.weight);
    gradient.add_rest(seen.gradient);
    direction.add_rest(seen.direction);
    change.add_rest(seen.change);
  }
  void add_to(TensorSums& sums) const {
    sums.weight += weight.total();
    sums.gradient += gradient.total();
    sums.direction += direction.total();
    sums.change += change.total();
  }
};

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

/// Pass::at() for n elements from `first` on.
template <class Pass, class T, class Element>
void over_block(const Memory<T>& at, const Element& element, int64_t first, int64_t n, TensorSums& sums) {
  BlockSums<Pass> block;
  int64_t i = 0;
  for (; i + LaneSum::kLanes <= n; i += LaneSum::kLanes) {
#pragma GCC ivdep
    for (int64_t lane = 0; lane < LaneSum::kLanes; ++lane)
      block.add(lane, Pass::at(at, element, first + i + lane));
  }
  for (; i < n; ++i) block.add_rest(Pass::at(at, element, first + i));
  block.add_to(sums);
}

template <class Pass, class T, class Element>
TensorSums over_chunk(const TensorLists& lists, const Element& coefficients, const Chunk& chunk) {
  const Memory<T> at = memory<T>(lists, chunk.tensor);
  const Element element = coefficients;  // a copy, which no store through `at` changes
  TensorSums sums;
  with_wide_registers([&] {
    for (int64_t i = chunk.first; i < chunk.last; i += kBlock)
      over_block<Pass>(at, element, i, std::min(kBlock, chunk.last - i), sums);
  });
  return sums;
}

template <class Pass, class Element>
PassSums over_tensors(const TensorLists& lists, const std::vector<Element>& elements) {
  const std::vector<Chunk> chunks = chunks_of(lists.weights);
  std::vector<TensorSums> parts(chunks.size());
  const auto run_chunk = [&](int64_t number) {
    const Chunk& chunk = chunks[static_cast<size_t>(number)];
    const Element& element = elements[chunk.tensor];
    parts[static_cast<size_t>(number)] = lists.weights[chunk.tensor].scalar_type() == at::kDouble
                                             ? over_chunk<Pass, double>(lists, element, chunk)
                                             : over_chunk<Pass, float>(lists, element, chunk);
  };
  int64_t count = 0;
  for (const at::Tensor& tensor : lists.weights) count += tensor.numel();
  for_each_chunk(static_cast<int64_t>(chunks.size()), count, run_chunk);
  PassSums sums(lists.weights.size());
  for (size_t i = 0; i < chunks.size(); ++i) add(sums[chunks[i].tensor], parts[i]);
  return sums;
}

/// For SGD, LARS and LARC.
struct Measure {
  static constexpr Wanted kSums{.weight = true, .gradient = true, .direction = true};
  template <class T>
  static Seen at(const Memory<T>& at, const MomentumElement<double>& e, int64_t i) {
    const double w = at.w[i], g = at.g[i];
    return {.weight = w, .gradient = g, .direction = e.direction(w, g)};
  }
};

struct FillBuffer {
  static constexpr Wanted kSums = Measure::kSums;
  template <class T>
  static Seen at(const Memory<T>& at, const MomentumElement<double>& e, int64_t i) {
    const double w = at.w[i], g = at.g[i];
    const double v = e.next_buffer(at.first[i], e.direction(w, g));
    at.first[i] = static_cast<T>(v);
    return {.weight = w, .gradient = g, .direction = v};
  }
};

template <Norms norms, bool buffer, bool limited>
struct UpdateMomentum {
  static constexpr Wanted kSums = of_an_update(norms);
  template <class T>
  static Seen at(const Memory<T>& at, const MomentumElement<double>& e, int64_t i) {
    const double w = at.w[i], g = at.g[i];
    const double d = limited ? e.direction(w, g) : e.unlimited_direction(w, g);
    double v = 0;
    if constexpr (buffer) {
      v = e.next_buffer(at.first[i], d);
      at.first[i] = static_cast<T>(v);
    }
    const double change = e.change(w, v, d);
    at.w[i] = static_cast<T>(w - change);
    return {.weight = w, .gradient = g, .change = change};
  }
};

/// m / (sqrt(v) second + eps) in the weights' own type, for root and division take half the time of an update: of float32 an
/// error of some 1e-7 in each element, as a float32 state brings anyway.
template <class T>
double normalised(T m, T v, const MomentElement<double>& e) {
  MomentElement<T> narrow;
  narrow.second = static_cast<T>(e.second);
  narrow.eps = static_cast<T>(e.eps);
  return static_cast<double>(narrow.normalised(m, v));
}

template <class T>
struct MomentPair {
  T m, v;
};

/// What is stored is what counts.
template <bool plain, class T>
MomentPair<T> advanced(const Memory<T>& at, const MomentElement<double>& e, int64_t i, double w, double g) {
  const double d = plain ? g : e.corrected_gradient(w, g);
  const MomentPair<T> next{static_cast<T>(e.next_first(at.first[i], d)),
                           static_cast<T>(e.next_second(at.second[i], d))};
  at.first[i] = next.m;
  at.second[i] = next.v;
  return next;
}

template <bool plain, class T>
double direction(double w, const MomentPair<T>& moments, const MomentElement<double>& e) {
  const double r = normalised(moments.m, moments.v, e);
  return plain ? r : r + e.decay * w;
}

struct AdvanceMoments {
  static constexpr Wanted kSums{.weight = true, .gradient = true, .direction = true};
  template <class T>
  static Seen at(const Memory<T>& at, const MomentElement<double>& e, int64_t i) {
    const double w = at.w[i], g = at.g[i];
    return {.weight = w, .gradient = g, .direction = direction<false>(w, advanced<false>(at, e, i, w, g), e)};
  }
};

template <Norms norms>
struct ApplyMoments {
  static constexpr Wanted kSums = of_an_update(norms);
  template <class T>
  static Seen at(const Memory<T>& at, const MomentElement<double>& e, int64_t i) {
    const double w = at.w[i];
    const double change = e.change(w, direction<false>(w, MomentPair<T>{at.first[i], at.second[i]}, e));
    at.w[i] = static_cast<T>(w - change);
    return {.change = change};
  }
};

template <Norms norms, bool plain>
struct UpdateMoments {
  static constexpr Wanted kSums = of_an_update(norms);
  template <class T>
  static Seen at(const Memory<T>& at, const MomentElement<double>& e, int64_t i) {
    const double w = at.w[i], g = at.g[i];
    const double change = e.change(w, direction<plain>(w, advanced<plain>(at, e, i, w, g), e));
    at.w[i] = static_cast<T>(w - change);
    return {.weight = w, .gradient = g, .change = change};
  }
};

template <Norms norms, bool average>
struct UpdateSigns {
  static constexpr Wanted kSums = of_an_update(norms);
  template <class T>
  static Seen at(const Memory<T>& at, const SignElement<double>& e, int64_t i) {
    const double w = at.w[i], g = at.g[i];
    double m = 0;
    if constexpr (average) {
      m = at.first[i];
      at.first[i] = static_cast<T>(e.next_average(m, g));
    }
    const double change = e.change(w, e.direction(m, g));
    at.w[i] = static_cast<T>(w - change);
    return {.weight = w, .gradient = g, .change = change};
  }
};

template <class F>
PassSums by_norms(Norms norms, const F& f) {
  switch (norms) {
    case Norms::all:
      return f(std::integral_constant<Norms, Norms::all>());
    case Norms::change:
      return f(std::integral_constant<Norms, Norms::change>());
    default:
      return f(std::integral_constant<Norms, Norms::none>());
  }
}

/// f(std::bool_constant<flag>()...): a loop for each case, so that none asks an element what all know.
template <class F>
PassSums by_case(const F& f) {
  return f();
}
template <class F, class... More>
PassSums by_case(const F& f, bool flag, More... more) {
  const auto with = [&](auto known) {
    return by_case([&](auto... others) { return f(known, others...); }, more...);
  };
  return flag ? with(std::true_type()) : with(std::false_type());
}

bool has_limit(const MomentumElement<double>& e) { return e.limit < INFINITY; }
bool is_plain(const MomentElement<double>& e) { return e.gradient == 1 && e.l2 == 0 && e.decay == 0; }

}  // namespace

PassSums measure(const TensorLists& lists, const MomentumElements& elements) {
  return over_tensors<Measure>(lists, elements);
}

PassSums fill_buffer(const TensorLists& lists, const MomentumElements& elements) {
  return over_tensors<FillBuffer>(lists, elements);
}

PassSums update_momentum(const TensorLists& lists, const MomentumElements& elements, Norms norms) {
  return by_norms(norms, [&](auto wanted) {
    return by_case(
        [&](auto buffer, auto limited) {
          return over_tensors<UpdateMomentum<wanted.value, buffer.value, limited.value>>(lists, elements);
        },
        !lists.first.empty(), std::any_of(elements.begin(), elements.end(), has_limit));
  });
}

PassSums advance_moments(const TensorLists& lists, const MomentElements& elements) {
  return over_tensors<AdvanceMoments>(lists, elements);
}

PassSums apply_moments(const TensorLists& lists, const MomentElements& elements, Norms norms) {
  return by_norms(norms,
                  [&](auto wanted) { return over_tensors<ApplyMoments<wanted.value>>(lists, elements); });
}

PassSums update_moments(const TensorLists& lists, const MomentElements& elements, Norms norms) {
  return by_norms(norms, [&](auto wanted) {
    return by_case(
        [&](auto plain) { return over_tensors<UpdateMoments<wanted.value, plain.value>>(lists, elements); },
        std::all_of(elements.begin(), elements.end(), is_plain));
  });
}

PassSums update_signs(const TensorLists& lists, const SignElements& elements, Norms norms) {
  return by_norms(norms, [&](auto wanted) {
    return by_case(
        [&](auto average) { return over_tensors<UpdateSigns<wanted.value, average.value>>(lists, elements); },
        !lists.first.empty());
  });
}

}  // namespace basin
