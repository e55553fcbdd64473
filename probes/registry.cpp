#include "probes/registry.h"

#include "probes/batch_sharpness.h"
#include "probes/curvature.h"
#include "probes/fisher_rao.h"
#include "probes/gradient_statistics.h"
#include "probes/margins.h"
#include "probes/noise_curvature.h"
#include "probes/noise_scale.h"
#include "probes/pac_bayes.h"
#include "probes/preconditioned_curvature.h"
#include "probes/relative_flatness.h"
#include "probes/sharpness_adaptive.h"
#include "probes/sharpness_keskar.h"
#include "probes/sharpness_sam.h"
#include "probes/top_eigenvalues.h"
#include "probes/weight_norms.h"

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
      entry<NoiseScaleOptions, make_noise_scale>("noise_scale", "gradient noise scale tr Sigma / |G|^2", 3),
      entry<GradientStatisticsOptions, make_gradient_statistics>(
          "gradient_statistics", "noise by single gradients: diversity, coherence, GSNR, norms", 2),
      entry<NoiseCurvatureOptions, make_noise_curvature>(
          "noise_curvature", "gradient noise against curvature: weighted noise scale, overlap, alignment", 2),
      entry<BatchSharpnessOptions, make_batch_sharpness>("batch_sharpness",
                                                         "curvature of batches along their own gradients", 1),
      entry<CurvatureOptions, make_curvature>(
          "curvature", "spectrum of a curvature matrix: eigenvalues, density, trace, Frobenius norm", 1),
      entry<PreconditionedCurvatureOptions, make_preconditioned_curvature>(
          "preconditioned_curvature", "largest eigenvalues of the Hessian as the optimiser sees it", 1),
      entry<SharpnessSamOptions, make_sharpness_sam>("sharpness_sam",
                                                     "SAM and ASAM sharpness, and by groups of examples", 1),
      entry<SharpnessAdaptiveOptions, make_sharpness_adaptive>(
          "sharpness_adaptive", "worst and average rise of the loss in balls that follow the weights", 1),
      entry<PacBayesOptions, make_pac_bayes>("pac_bayes",
                                             "noise on the weights that costs 0.1 of the accuracy", 2),
      entry<RelativeFlatnessOptions, make_relative_flatness>(
          "relative_flatness", "relative flatness of a linear layer, as a rule the last", 1),
      entry<FisherRaoOptions, make_fisher_rao>("fisher_rao", "Fisher-Rao norm w'Fw of the weights", 1),
      entry<WeightNormsOptions, make_weight_norms>(
          "weight_norms", "norms of the weights and layers, distances from the start, path norm", 1),
      entry<MarginsOptions, make_margins>("margins", "margins of the logits, as they are and normalised", 1),
  };
  return table;
}

}  // namespace basin
