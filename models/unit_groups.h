// defines: UnitGroup, hidden units that may change places; UnitAxis, append_unit_group().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace basin {

class Model;

/// An axis of a parameter or buffer that is indexed by hidden unit.
struct UnitAxis {
  std::string tensor;  // the name in parameter_table() or buffer_table()
  int64_t axis = 0;
  int64_t repeat = 1;  // consecutive entries that belong to one unit: the pixels of a flattened picture
};

/// Hidden units (neurons, channels) that stand side by side: with the same permutation on all axes of
/// `outputs` and `inputs` the network is the same function. Where two layers write into one stream (a
/// residual block and its shortcut) both are in `outputs`, and all that read it are in `inputs`.
struct UnitGroup {
  std::string name;  // of the first layer that makes the units
  int64_t units = 0;
  std::vector<UnitAxis> outputs;  // what makes a unit: weights, biases; its norm's weight, bias, statistics
  std::vector<UnitAxis> inputs;   // weights that take it
  /// Between them: a positively homogeneous activation, at most pooling and sums, and no norm without a
  /// learned scale. The function is then the same with the units alpha times as large and `inputs` 1/alpha.
  bool rescalable = false;
  /// A batch norm follows each weight of `outputs`, whose scale doesn't matter but for eps.
  bool normalised = false;
  double norm_eps = 0;  // of those norms
};

/// A layer, and the norm after it ("" or one without parameters: none).
struct UnitSource {
  std::string layer, norm;
};

/// Appends the group of units that `sources` make and `readers` take, sizes and optional tensors as the
/// model's tables have them. Not where a group norm follows: it binds units to their neighbours. `relu`: the
/// activation between is that.
void append_unit_group(std::vector<UnitGroup>& groups, const Model& model, bool relu,
                       const std::vector<UnitSource>& sources, const std::vector<std::string>& readers,
                       double norm_eps = 1e-5);

}  // namespace basin
