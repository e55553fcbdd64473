#include "core/parameter.h"

#include "core/error.h"

namespace basin {

const char* to_string(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::weight:
      return "weight";
    case ParameterKind::bias:
      return "bias";
    case ParameterKind::norm_weight:
      return "norm_weight";
    case ParameterKind::norm_bias:
      return "norm_bias";
  }
  return "weight";
}

ParameterKind parameter_kind(const std::string& name) {
  for (ParameterKind kind :
       {ParameterKind::weight, ParameterKind::bias, ParameterKind::norm_weight, ParameterKind::norm_bias}) {
    if (name == to_string(kind)) return kind;
  }
  throw ConfigError("unknown parameter kind \"" + name + "\"; known: weight, bias, norm_weight, norm_bias");
}

}  // namespace basin
