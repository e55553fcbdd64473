// defines: scalar_type(), the floating-point type that an option names.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>

namespace basin {

/// "float32" or "float64"; ConfigError for another.
c10::ScalarType scalar_type(const std::string& dtype);

}  // namespace basin
