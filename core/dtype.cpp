#include "core/dtype.h"

#include "core/error.h"

namespace basin {

c10::ScalarType scalar_type(const std::string& dtype) {
  if (dtype == "float64") return at::kDouble;
  if (dtype == "float32") return at::kFloat;
  throw ConfigError("unknown dtype \"" + dtype + "\"; known: float32, float64");
}

}  // namespace basin
