// defines: NoiseControl, noise of the right length and the wrong shape.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "core/parameter.h"
#include "trainers/hooks/noise_weights.h"

namespace basin {

/// Puts other noise in the place of z, one tensor per parameter, |.| over all of them together:
///   isotropic         |z| zeta/|zeta|, zeta normal and independent in every coordinate
///   coordinate_signs  z_j with a random sign: the diagonal of the covariance stays, correlations go
///   layers_exchanged  each layer's part keeps its direction and gets the length of the next layer's, the last the first's
/// Random numbers by (seed, update, coordinate), coordinates counted through the parameters in their order. The length is that of z, to
/// rounding; under layers_exchanged it is less where a layer without noise would have to get some. ConfigError for layers_exchanged of
/// a network of one layer.
///
/// Cost: a pass or two over z; isotropic and coordinate_signs draw one number per weight on the host.
class NoiseControl {
 public:
  enum class Kind { none, isotropic, coordinate_signs, layers_exchanged };
  static const std::vector<std::string>& names();

  NoiseControl(const std::string& name, const std::vector<ParameterInfo>& parameters, uint64_t seed);
  bool on() const { return kind_ != Kind::none; }
  void replace(const std::vector<at::Tensor>& z, int64_t update) const;

 private:
  std::vector<at::Tensor> drawn(const std::vector<at::Tensor>& z, int64_t update) const;
  void exchange(const std::vector<at::Tensor>& z) const;
  Kind kind_;
  NoiseDraws draws_;
  std::vector<std::pair<size_t, size_t>>
      layers_;  // each one's parameters: the first, and that after the last
};

}  // namespace basin
