// defines: estimate_dual_noise(), the noise of gradients against their mean in the dual norms of sign and spectral descent.
#pragma once

#include "core/math/ratio_estimate.h"
#include "hessian/parameter_vector.h"
#include "probes/estimators/noise_estimate.h"
#include "probes/estimators/norm_ball.h"

namespace basin {

/// Noise, signal |G|_* and scale = (noise / signal)^2.
struct DualNoiseNumbers {
  Estimate noise, signal, scale;
  bool resolved = false;  // the signal's interval leaves out 0
};

struct DualNoiseEstimate {
  DualNoiseNumbers population;  // the distribution that the set was drawn from
  DualNoiseNumbers finite;      // the set of set_examples, of which the gradients' examples are a random part
};

struct DualNoiseEstimates {
  DualNoiseEstimate sign, spectral;
  bool all_finite = true;  // all gradients were finite numbers
};

/// Needs at least 4 groups and set_examples >= gradients.examples; formulas in probes/dual_noise_scale.h. Memory: 20 to 38 vectors in
/// float64 and half as many squares of each matrix's shorter side.
DualNoiseEstimates estimate_dual_noise(const GradientGroups& gradients, const ParameterVector& vector,
                                       int64_t set_examples);
DualNoiseEstimate no_dual_noise_estimate();

}  // namespace basin
