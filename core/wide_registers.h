// defines: with_wide_registers(), a loop compiled for several widths of vector registers, the widest chosen
// at run time.
#pragma once

namespace basin {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__)

namespace wide {
// prefer-vector-width: left alone, gcc stays at 256 bits.
template <class F>
__attribute__((target("avx512f,avx512vl,avx512dq,prefer-vector-width=512"), flatten)) void avx512(
    const F& f) {
  f();
}
template <class F>
__attribute__((target("avx2"), flatten)) void avx2(const F& f) {
  f();
}
inline int width() {
  static const int chosen = [] {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
      return 512;
    return __builtin_cpu_supports("avx2") ? 256 : 128;
  }();
  return chosen;
}
}  // namespace wide

/// f(), with everything that it calls inlined and compiled for the registers that this processor has: what is
/// compiled for any x86-64 has two float64 side by side, this has up to eight. Only for files that are built
/// with -ffp-contract=off (cmake's basin_loops()): wider registers alone change no bits, a multiplication
/// fused with an addition does.
template <class F>
void with_wide_registers(const F& f) {
  switch (wide::width()) {
    case 512:
      return wide::avx512(f);
    case 256:
      return wide::avx2(f);
    default:
      return f();
  }
}

#else

template <class F>
void with_wide_registers(const F& f) {
  f();
}

#endif

}  // namespace basin
