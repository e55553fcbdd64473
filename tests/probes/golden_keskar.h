// Written by tests/oracles/keskar_phi.py --write: maxima found by scipy's L-BFGS-B. Do not edit.
#pragma once

namespace basin::testing {

struct GoldenPhi {
  const char* space;
  double eps, maximum, ten_from_corner;
};

inline constexpr double kGoldenBaseLoss = 1.1508985974633796;

inline constexpr GoldenPhi kGoldenPhi[] = {
    {"full", 0.001, 0.08308777008317521, 0.08308777008317521},
    {"full", 0.0005, 0.04150983661080319, 0.04150983661080319},
    {"full", 0.02, 1.7044144060315436, 1.7044144060315436},
    {"full", 0.2, 32.60094862466166, 23.07039145854533},
    {"relative", 0.001, 0.01826441230859943, 0.01826441230859943},
    {"relative", 0.5, 13.499264011708274, 11.22886186064889},
};

// In the Gaussian subspace of 5 dimensions that seed 21 names.
struct GoldenSubspacePhi {
  double eps, maximum;
};

inline constexpr GoldenSubspacePhi kGoldenSubspacePhi[] = {
    {0.001, 0.06831140398385424},
    {0.0005, 0.03407324301570569},
    {0.02, 1.4995484956625764},
};

}  // namespace basin::testing
