// defines: steepest_ascent(), the direction in which SAM and ASAM look.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/parameter.h"

namespace basin {

/// Where T = |w| + eta, element by element; it is 1 elsewhere.
///   none     nowhere: SAM (Foret et al. 2021, arXiv 2010.01412, equation 2)
///   weights  weights and norm weights: ASAM as in its authors' code, which goes by the parameter's name
///            (Kwon et al. 2021, arXiv 2102.11600, algorithm 1)
///   all      biases and norm biases too
enum class AscentScale { none, weights, all };

/// max g'd over |T^-1 d| <= rho is rho `slope`, at d = rho `direction` / slope; |.| is the Euclidean norm
/// over all parameters together. In float64: 1/|g| and a square can be beyond the type of the weights.
struct Ascent {
  std::vector<at::Tensor> direction;  // T^2 g, one tensor per parameter
  double slope = 0;                   // |T g|
};
Ascent steepest_ascent(const std::vector<ParameterInfo>& parameters, const std::vector<at::Tensor>& gradients,
                       AscentScale scale, double eta);

}  // namespace basin
