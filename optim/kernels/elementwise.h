// defines: MomentumElement, MomentElement and SignElement, what one element of a parameter goes through in an update, the one place
// that the CPU's loops and the CUDA kernels share; TensorSums, Treatment and StepScalars, what their coefficients are of.
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define BASIN_HOST_DEVICE __host__ __device__
#else
#define BASIN_HOST_DEVICE
#endif

namespace basin {

/// Sums of squares over one tensor.
struct TensorSums {
  double weight = 0;     // before the update
  double gradient = 0;   // as it came
  double direction = 0;  // of what a trust ratio may divide by
  double change = 0;     // of the weights
};

/// Where the trust ratio of a step comes from: its own, a given one, another tensor's, or the mean of all that have one
/// (optim/trust_arm.h).
enum class RatioSource { own, given, other, mean };

/// What is different from tensor to tensor.
struct Treatment {
  double decay = 0;        // weight decay, its factor included; 0 where excluded
  bool trust = true;       // may have a trust ratio
  double rate_factor = 1;  // on the learning rate, wherever a rule has it
  RatioSource source = RatioSource::own;
  double given_ratio = 1;
  int64_t other = 0;
};

/// The ratio that tensor i of n is stepped with, live(j) being what a rule makes of tensor j's norms.
template <class Live>
BASIN_HOST_DEVICE double stepped_ratio(const Treatment* tensors, int64_t n, int64_t i, const Live& live) {
  if (tensors[i].source == RatioSource::own) return live(i);
  if (tensors[i].source == RatioSource::given) return tensors[i].given_ratio;
  if (tensors[i].source == RatioSource::other) return live(tensors[i].other);
  double sum = 0;
  int64_t trusted = 0;
  for (int64_t j = 0; j < n; ++j) {
    if (!tensors[j].trust) continue;
    sum += live(j);
    ++trusted;
  }
  return sum / static_cast<double>(trusted);
}

/// What is different from update to update.
struct StepScalars {
  double rate = 0;                          // learning rate
  double gradient_norm = 0;                 // of all gradients as one vector, where the rule clips it
  double correction1 = 1, correction2 = 1;  // 1 - beta^t
  bool norms = true;                        // whether a report is wanted

  BASIN_HOST_DEVICE double rate_of(const Treatment& tensor) const { return rate * tensor.rate_factor; }
};

/// SGD, LARS and LARC, all by coefficients that are one number per tensor:
///
///   d  = clamp(g + decay w, -limit, limit)
///   v <- keep v + add d
///   w <- w - (shrink w + buffer v + direct d)
///
/// Learning rate or trust ratio in `add` stand inside the momentum buffer, in `buffer` outside of it; `direct` is
/// Nesterov's share of the new gradient, and all of it where there is no momentum; `shrink` is decoupled decay.
template <class T>
struct MomentumElement {
  T decay = 0, limit = INFINITY;
  T keep = 0, add = 0;
  T shrink = 0, buffer = 0, direct = 0;

  BASIN_HOST_DEVICE T unlimited_direction(T w, T g) const { return g + decay * w; }
  BASIN_HOST_DEVICE T direction(T w, T g) const {
    const T d = unlimited_direction(w, g);
    return d > limit ? limit : (d < -limit ? -limit : d);  // NaN passes
  }
  BASIN_HOST_DEVICE T next_buffer(T v, T d) const { return keep * v + add * d; }
  BASIN_HOST_DEVICE T change(T w, T v, T d) const { return shrink * w + buffer * v + direct * d; }
};

/// Adam, AdamW and LAMB:
///
///   d  = gradient g + l2 w
///   m <- beta1 m + (1 - beta1) d;   v <- beta2 v + (1 - beta2) d^2
///   u  = m / (sqrt(v) second + eps) + decay w,   the first term 0 where m = 0, also if eps = 0
///   w <- w - (shrink w + rate u)
///
/// Bias corrections are moved into the denominator: with c1 = 1 - beta1^t, c2 = 1 - beta2^t, second = c1/sqrt(c2) and eps
/// stands for c1 eps.
template <class T>
struct MomentElement {
  T gradient = 1, l2 = 0;
  T beta1 = 0, beta2 = 0, new1 = 1, new2 = 1;  // new = 1 - beta, rounded once from float64
  T second = 1, eps = 0, decay = 0;
  T shrink = 0, rate = 0;

  BASIN_HOST_DEVICE T corrected_gradient(T w, T g) const { return gradient * g + l2 * w; }
  BASIN_HOST_DEVICE T next_first(T m, T d) const { return beta1 * m + new1 * d; }
  BASIN_HOST_DEVICE T next_second(T v, T d) const { return beta2 * v + new2 * d * d; }
  BASIN_HOST_DEVICE T normalised(T m, T v) const { return m == 0 ? T(0) : m / (std::sqrt(v) * second + eps); }
  BASIN_HOST_DEVICE T direction(T w, T m, T v) const { return normalised(m, v) + decay * w; }
  BASIN_HOST_DEVICE T change(T w, T u) const { return shrink * w + rate * u; }
};

/// Lion and signSGD:
///
///   u  = sign(blend m + fresh g)
///   w <- w - (shrink w + rate u)
///   m <- keep m + add g
template <class T>
struct SignElement {
  T blend = 0, fresh = 1;
  T keep = 0, add = 1;
  T shrink = 0, rate = 0;

  BASIN_HOST_DEVICE T direction(T m, T g) const {
    const T c = blend * m + fresh * g;
    return c > 0 ? T(1) : (c < 0 ? T(-1) : c);  // 0 and NaN as they are
  }
  BASIN_HOST_DEVICE T next_average(T m, T g) const { return keep * m + add * g; }
  BASIN_HOST_DEVICE T change(T w, T u) const { return shrink * w + rate * u; }
};

}  // namespace basin
