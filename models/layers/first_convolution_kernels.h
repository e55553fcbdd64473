// defines: FirstConvolution, the loops of a network's first convolution with what follows it, for the two files that compile them
// for registers of different width.
#pragma once

#include "models/layers/first_convolution_loops.h"

namespace basin {
namespace {  // NOLINT(misc-anonymous-namespace-in-header): a copy for each file, as said below

/// `lanes` channels side by side in one register. Everything is in this header and nothing of the standard library is, for what is
/// compiled here needs a processor that others may lack, and the linker would keep one copy of an inline function for all.
template <int64_t lanes, int64_t in>
struct FirstConvolution {
  // No aliases: gcc drops the attribute from them. NOLINTNEXTLINE(modernize-use-using)
  typedef float Numbers __attribute__((vector_size(4 * lanes)));
  typedef Place Places __attribute__((vector_size(4 * lanes)));  // NOLINT(modernize-use-using)
  static_assert(sizeof(Numbers) == 4 * lanes && sizeof(Places) == 4 * lanes);
  static constexpr int64_t kRow = 3 * in;  // taps of one row of the kernel, side by side in memory

  static Numbers load(const float* x) {
    Numbers v;
    __builtin_memcpy(&v, x, sizeof v);
    return v;
  }
  static void store(float* x, const Numbers& v) { __builtin_memcpy(x, &v, sizeof v); }
  static Places load_places(const Place* x) {
    Places v;
    __builtin_memcpy(&v, x, sizeof v);
    return v;
  }

  /// A copy with a border of zeros.
  static void pad(const FirstConvolutionShape& s, const float* x, float* padded) {
    const int64_t row = (s.width + 2) * in;
    for (int64_t k = 0; k < (s.height + 2) * row; ++k) padded[k] = 0;
    for (int64_t i = 0; i < s.height; ++i)
      for (int64_t k = 0; k < s.width * in; ++k) padded[(i + 1) * row + in + k] = x[i * s.width * in + k];
  }

  static void take_larger(const Numbers& value, Place from, Numbers& largest, Places& place) {
    const Places larger = (value > largest) | (value != value);  // NOLINT(misc-redundant-expression): NaN
    largest = larger ? value : largest;
    place = larger ? from + Places{} : place;
  }

  /// `squares` squares of outputs next to each other, `lanes` channels: of each the largest, or 0.
  template <int squares>
  static void outputs(const FirstConvolutionShape& s, const float* corner, const float* weights,
                      const float* bias, float* y, Place* places) {
    const int64_t row = (s.width + 2) * in;
    Numbers sums[squares][4];
    for (int q = 0; q < squares; ++q)
      for (int k = 0; k < 4; ++k) sums[q][k] = load(bias);
    for (int r = 0; r < 3; ++r) {
#pragma GCC unroll 12
      for (int t = 0; t < kRow; ++t) {
        const Numbers w = load(weights + (r * kRow + t) * s.channels);
#pragma GCC unroll 8
        for (int q = 0; q < squares; ++q) {
          const float* first = corner + r * row + t + 2 * in * q;
          sums[q][0] += first[0] * w;
          sums[q][1] += first[in] * w;
          sums[q][2] += first[row] * w;
          sums[q][3] += first[row + in] * w;
        }
      }
    }
    for (int q = 0; q < squares; ++q) {
      Numbers largest = sums[q][0];
      Places place{};
      for (Place k = 1; k < 4; ++k) take_larger(sums[q][k], k, largest, place);
      const Places off = largest <= 0;
      store(y + q * s.channels, off ? Numbers{} : largest);
      place = off ? kNowhere + Places{} : place;
      __builtin_memcpy(places + q * s.channels, &place, sizeof place);
    }
  }

  static void forward(const FirstConvolutionShape& s, const float* x, const float* weights, const float* bias,
                      float* y, Place* places, float* padded) {
    pad(s, x, padded);
    const int64_t columns = s.width / 2, row = (s.width + 2) * in;
    for (int64_t c = 0; c < s.channels; c += lanes) {
      for (int64_t i = 0; i < s.height / 2; ++i) {
        int64_t j = 0;
        for (; j + 2 <= columns; j += 2) {
          const int64_t at = (i * columns + j) * s.channels + c;
          outputs<2>(s, padded + 2 * i * row + 2 * j * in, weights + c, bias + c, y + at, places + at);
        }
        for (; j < columns; ++j) {
          const int64_t at = (i * columns + j) * s.channels + c;
          outputs<1>(s, padded + 2 * i * row + 2 * j * in, weights + c, bias + c, y + at, places + at);
        }
      }
    }
  }

  /// Adds to row r of the kernel's gradient, and with row 0 to the bias's, `lanes` channels of both.
  static void add_row(const FirstConvolutionShape& s, int r, const float* h, const Place* places,
                      float* by_weights, float* by_bias, const float* padded) {
    const int64_t columns = s.width / 2, row = (s.width + 2) * in;
    Numbers sums[kRow], total{};
    for (int t = 0; t < kRow; ++t) sums[t] = Numbers{};
    for (int64_t i = 0; i < s.height / 2; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t at = (i * columns + j) * s.channels;
        const Numbers value = load(h + at);
        const Places place = load_places(places + at);
        const float* first = padded + (2 * i + r) * row + 2 * j * in;
        const Numbers a = place == 0 ? value : Numbers{}, b = place == 1 ? value : Numbers{},
                      c = place == 2 ? value : Numbers{}, d = place == 3 ? value : Numbers{};
        total += place == kNowhere ? Numbers{} : value;
#pragma GCC unroll 12
        for (int t = 0; t < kRow; ++t) {
          sums[t] += first[t] * a;
          sums[t] += first[t + in] * b;
          sums[t] += first[t + row] * c;
          sums[t] += first[t + row + in] * d;
        }
      }
    }
    for (int t = 0; t < kRow; ++t) {
      float* to = by_weights + (r * kRow + t) * s.channels;
      store(to, load(to) + sums[t]);
    }
    if (r == 0) store(by_bias, load(by_bias) + total);
  }

  static void backward(const FirstConvolutionShape& s, const float* x, const float* h, const Place* places,
                       float* by_weights, float* by_bias, float* padded) {
    pad(s, x, padded);
    for (int64_t c = 0; c < s.channels; c += lanes)
      for (int r = 0; r < 3; ++r) add_row(s, r, h + c, places + c, by_weights + c, by_bias + c, padded);
  }
};

template <int64_t lanes, int64_t in>
constexpr FirstConvolutionLoops loops_of() {
  return {&FirstConvolution<lanes, in>::forward, &FirstConvolution<lanes, in>::backward};
}

template <int64_t lanes>
FirstConvolutionLoops loops_for(int64_t in) {
  switch (in) {
    case 1:
      return loops_of<lanes, 1>();
    case 2:
      return loops_of<lanes, 2>();
    case 3:
      return loops_of<lanes, 3>();
    default:
      return loops_of<lanes, 4>();
  }
}

}  // namespace
}  // namespace basin
