// defines: append_unit_group(), the units that layers make and others read; UnitSource.
#pragma once

#include <string>
#include <vector>

#include "models/model.h"

namespace basin {

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
