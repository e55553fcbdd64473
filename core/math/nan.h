// defines: kNaN.
#pragma once

#include <limits>

namespace basin {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace basin
