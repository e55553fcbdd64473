// defines: GradientFindings, the estimates that gradient_statistics reports; its options.
#pragma once

#include <vector>

#include "probes/estimators/layer_sums.h"
#include "probes/estimators/signal_to_noise.h"
#include "probes/noise_quantities.h"

namespace basin {

/// The options of the probe gradient_statistics.
struct GradientStatisticsOptions {
  std::vector<int64_t> percentiles = {5, 25, 50, 75, 95};  // of |g_i|
  bool signal_to_noise = true;
  bool by_layer = false;
};

/// The estimates for one set of parameters: all of them, or those of one layer.
struct GradientNoise {
  NoiseEstimate estimate = no_noise_estimate();
  double mean_squared_norm = kNaN;  // 1/n sum_i |g_i|^2
};

/// NaN wherever there is nothing; vectors have their lengths all the same.
struct GradientFindings {
  bool finite = true;  // all gradients were
  GradientNoise whole;
  std::vector<GradientNoise> layers;  // where asked for
  std::vector<Estimate> percentiles;
  SignalToNoiseEstimate over_parameters, over_layers;  // where asked for, as the next
  std::vector<SignalToNoiseEstimate> of_layers;
  int64_t counted = 0;  // parameters with a ratio
};

GradientFindings gradient_findings(const GradientStatisticsOptions& options, const ProbeContext& context,
                                   const LayerSums& layers);

}  // namespace basin
