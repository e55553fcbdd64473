#include "models/layers/halving_loops.h"

#include <type_traits>

#include "core/math/parallel_chunks.h"
#include "core/math/wide_registers.h"

namespace basin {
namespace {

/// The four values of a square lie here and `right`, `down` and both further on.
template <class T>
struct Square {
  T *a, *b, *c, *d;
  Square(T* x, int64_t right, int64_t down) : a(x), b(x + right), c(x + down), d(x + down + right) {}
};

/// at_square(place in the larger images, place in the smaller) for every square.
template <class F>
void for_each_square(const HalvingShape& s, const F& at_square) {
  const int64_t row = s.width * s.channels, rows = s.height / 2, columns = s.width / 2;
  const auto image = [&](int64_t n) {
    with_wide_registers([&] {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j)
          at_square((n * s.height + 2 * i) * row + 2 * j * s.channels,
                    ((n * rows + i) * columns + j) * s.channels);
      }
    });
  };
  for_each_chunk(s.images, s.images * s.height * row, image);
}

template <class T>
void take_larger(T value, Place from, T& largest, Place& place) {
  // NOLINTNEXTLINE(misc-redundant-expression): NaN, by a comparison that becomes vectors
  const bool larger = value > largest || value != value;
  largest = larger ? value : largest;
  place = larger ? from : place;
}

template <bool rectify, class T>
void halve_square(int64_t channels, const Square<const T>& in, T* __restrict y, Place* __restrict places) {
  for (int64_t k = 0; k < channels; ++k) {
    T largest = in.a[k];
    Place place = 0;
    take_larger(in.b[k], 1, largest, place);
    take_larger(in.c[k], 2, largest, place);
    take_larger(in.d[k], 3, largest, place);
    if constexpr (rectify) {
      const bool off = largest <= 0;  // not NaN
      largest = off ? T(0) : largest;
      place = off ? kNowhere : place;
    }
    y[k] = largest;
    places[k] = place;
  }
}

}  // namespace

template <class T>
void halve(const HalvingShape& s, bool rectify, const T* x, T* y, Place* places) {
  const int64_t down = s.width * s.channels;
  const auto squares = [&](auto rectified) {
    for_each_square(s, [&](int64_t large, int64_t small) {
      halve_square<rectified.value>(s.channels, Square<const T>(x + large, s.channels, down), y + small,
                                    places + small);
    });
  };
  if (rectify) {
    squares(std::true_type());
  } else {
    squares(std::false_type());
  }
}

template <class T>
void spread(const HalvingShape& s, const T* y, const Place* places, T* x) {
  const int64_t down = s.width * s.channels;
  for_each_square(s, [&](int64_t large, int64_t small) {
    const Square<T> out(x + large, s.channels, down);
    T* __restrict a = out.a, * __restrict b = out.b, * __restrict c = out.c, * __restrict d = out.d;
    for (int64_t k = 0; k < s.channels; ++k) {
      const T value = y[small + k];
      const Place place = places[small + k];
      a[k] = place == 0 ? value : T(0);
      b[k] = place == 1 ? value : T(0);
      c[k] = place == 2 ? value : T(0);
      d[k] = place == 3 ? value : T(0);
    }
  });
}

template <class T>
void select(const HalvingShape& s, const T* x, const Place* places, T* y) {
  const int64_t down = s.width * s.channels;
  for_each_square(s, [&](int64_t large, int64_t small) {
    const Square<const T> in(x + large, s.channels, down);
    T* __restrict out = y + small;
    for (int64_t k = 0; k < s.channels; ++k) {
      const Place place = places[small + k];
      T value = place == 0 ? in.a[k] : T(0);
      value = place == 1 ? in.b[k] : value;
      value = place == 2 ? in.c[k] : value;
      out[k] = place == 3 ? in.d[k] : value;
    }
  });
}

template void halve(const HalvingShape&, bool, const float*, float*, Place*);
template void halve(const HalvingShape&, bool, const double*, double*, Place*);
template void spread(const HalvingShape&, const float*, const Place*, float*);
template void spread(const HalvingShape&, const double*, const Place*, double*);
template void select(const HalvingShape&, const float*, const Place*, float*);
template void select(const HalvingShape&, const double*, const Place*, double*);

}  // namespace basin
