// defines: Terrain, a loss over weight space, which is all that some kinds of landscape ask for; loss_columns().
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hessian/parameter_vector.h"
#include "landscape/directions.h"
#include "landscape/surface_file.h"

namespace basin {

/// A loss over weight space and the points of it that are known. A point is a state: one flat vector in float64, the parameters
/// first, in the order of parameters(), then what else moves with them (running statistics).
class Terrain {
 public:
  virtual ~Terrain() = default;

  /// Known points: checkpoints, or the weights that a problem came with.
  virtual size_t count() const = 0;
  virtual at::Tensor state(size_t i) const = 0;
  virtual std::string label(size_t i) const = 0;

  virtual const ParameterVector& parameters() const = 0;
  /// State 0, rounded to the network's type.
  virtual at::Tensor origin() const = 0;
  virtual std::string loss_units() const = 0;
  /// What measure() fills in, in that order; train_loss is among them.
  virtual std::vector<SurfaceColumn> score_columns() const = 0;
  /// nonfinite: NaN where a loss isn't finite.
  virtual CellState measure(const at::Tensor& state, double* values) = 0;
  /// The training loss alone.
  virtual double loss(const at::Tensor& state) = 0;
  /// What the numbers depend on besides a kind's own options.
  virtual h5::Attributes recipe() const = 0;
  /// The seed of a named stream.
  virtual uint64_t seed(const std::string& stream, uint64_t index = 0) const = 0;

  /// The weights of the origin, flat.
  at::Tensor weights() const { return origin().narrow(0, 0, parameters().size()); }
  /// Number `index` of the random directions from the origin.
  at::Tensor direction(const DirectionOptions& options, uint64_t index) const {
    return random_direction(parameters(), weights(), options, seed("direction", index));
  }
};

/// The columns SET_loss and SET_loss_error, its standard error over `examples` ("training examples").
std::vector<SurfaceColumn> loss_columns(const std::string& set, const std::string& examples,
                                        const std::string& units);
/// Whether it is the second of them.
bool is_loss_error(const SurfaceColumn& column);

}  // namespace basin
