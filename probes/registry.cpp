#include "probes/registry.h"

#include "probes/curvature.h"
#include "probes/noise_scale.h"
#include "probes/preconditioned_curvature.h"
#include "probes/sharpness_keskar.h"
#include "probes/top_eigenvalues.h"

namespace basin {
namespace {

template <class Options, std::unique_ptr<Probe> (*make)(const Options&)>
ProbeEntry entry(const std::string& name, const std::string& help, int64_t version) {
  return {name, help, version, &make_options<Options>,
          [](const AnyOptions& options) { return make(options_as<Options>(options)); }};
}

}  // namespace

const std::vector<ProbeEntry>& probe_registry() {
  static const std::vector<ProbeEntry> table = {
      entry<TopEigenvaluesOptions, make_top_eigenvalues>("top_eigenvalues",
                                                         "largest and smallest Hessian eigenvalues", 3),
      entry<SharpnessKeskarOptions, make_sharpness_keskar>("sharpness_keskar",
                                                           "Keskar's phi in three kinds of box", 2),
      entry<NoiseScaleOptions, make_noise_scale>("noise_scale", "gradient noise scale tr Sigma / |G|^2", 2),
      entry<CurvatureOptions, make_curvature>(
          "curvature", "spectrum of a curvature matrix: eigenvalues, density, trace, Frobenius norm", 1),
      entry<PreconditionedCurvatureOptions, make_preconditioned_curvature>(
          "preconditioned_curvature", "largest eigenvalues of the Hessian as the optimiser sees it", 1),
  };
  return table;
}

}  // namespace basin
