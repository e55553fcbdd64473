// defines: the probe sharpness_sam.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/presets.h"
#include "probes/probe.h"

namespace basin {

struct SharpnessSamOptions : WithPreset {
  SharpnessSamOptions();
  std::vector<double> rhos = {0.05};      // of SAM: Foret et al.'s for CIFAR-10
  std::vector<double> asam_rhos = {0.5};  // of ASAM: Kwon et al.'s for CIFAR-10; radii of another norm
  double eta = 0.01;                      // T = |w| + eta
  std::string scaled = "weights";         // where T isn't 1: weights | all
  int64_t group_size = 128;               // m
};
void bind_options(OptionTable& table, SharpnessSamOptions& options);

/// How far the loss rises along one step of steepest ascent:
///   first order  rho |T g|_2
///   ascended     L(w + d) - L(w), d = rho T^2 g / |T g|_2
/// T = 1 for SAM (Foret et al., ICLR 2021, arXiv 2010.01412, equation 2), |w| + eta for ASAM (Kwon et al.,
/// ICML 2021, arXiv 2102.11600): the step that training takes (optim/steepest_ascent.h). Taken over the
/// whole example set, and as m-sharpness: the mean over groups of m examples, each with an ascent of its own.
///
/// In units of the loss. Cost: two gradients and, of each rho, two forward passes. The ascended one is a
/// lower bound of the maximum over |T^-1 d| <= rho. What can go wrong: a float32 rise of less than 1e-6 of
/// the loss is rounding; without a gradient there is no direction (not_resolved). Definitions:
/// docs/probes.md#sam-and-asam-sharpness.
std::unique_ptr<Probe> make_sharpness_sam(const SharpnessSamOptions& options);

}  // namespace basin
