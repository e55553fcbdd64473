// defines: UnitGroup, hidden units that may change places; UnitAxis.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace basin {

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

}  // namespace basin
