// defines: direction_band(), statistics over several directions.
#pragma once

#include <string>
#include <vector>

#include "landscape/surface_file.h"

namespace basin {

/// The band of one column of a plot over {direction, alpha}, for each alpha over the K directions: mean, its
/// standard error, the 95 % interval of the mean by Student's t with K - 1 degrees of freedom (the directions
/// are independent draws), and the lowest and the highest direction. One picture is one draw: how far another
/// would lie is the range, not the interval.
///
/// Where a direction's value isn't finite, the mean, its error and the highest are NaN there and `finite`
/// counts those that are; the lowest is of these.
std::vector<SurfaceColumn> direction_band(const SurfacePlot& plot, const SurfaceColumn& column);

}  // namespace basin
