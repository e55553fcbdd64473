// defines: with_wide_registers(), a loop compiled for several widths of vector registers, the widest chosen
// at run time; wide::run(), the same at a stated width.
#pragma once

namespace basin {

namespace wide {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__)

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

/// Bits of this processor's registers: 128 (what is compiled for any processor), 256 or 512.
inline int widest() {
  static const int chosen = [] {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
      return 512;
    return __builtin_cpu_supports("avx2") ? 256 : 128;
  }();
  return chosen;
}

/// Whether it multiplies and adds in one operation.
inline bool fuses() { return __builtin_cpu_supports("fma"); }

/// f() at a width of 128, 256 or 512 bits; false, and nothing done, at others and at those that this
/// processor lacks.
template <class F>
bool run(int width, const F& f) {
  if (width > widest()) return false;
  switch (width) {
    case 512:
      avx512(f);
      return true;
    case 256:
      avx2(f);
      return true;
    case 128:
      f();
      return true;
    default:
      return false;
  }
}

#else

inline int widest() { return 128; }
inline bool fuses() { return false; }

template <class F>
bool run(int width, const F& f) {
  if (width != 128) return false;
  f();
  return true;
}

#endif

}  // namespace wide

/// f(), with everything that it calls inlined and compiled for the registers that this processor has: what is
/// compiled for any x86-64 has two float64 side by side, this has up to eight. Only for files that are built
/// with -ffp-contract=off (cmake's basin_loops()): wider registers alone change no bits, a multiplication
/// fused with an addition does.
template <class F>
void with_wide_registers(const F& f) {
  wide::run(wide::widest(), f);
}

}  // namespace basin
