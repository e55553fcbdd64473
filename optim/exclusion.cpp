#include "optim/exclusion.h"

namespace basin {

const std::vector<std::string>& default_exclusions() {
  static const std::vector<std::string> kinds{"bias", "norm_weight", "norm_bias"};
  return kinds;
}

Constraint parameter_kinds() { return one_of({"weight", "bias", "norm_weight", "norm_bias"}); }

std::vector<bool> excluded_parameters(const std::vector<ParameterInfo>& parameters,
                                      const std::vector<std::string>& kinds) {
  std::set<ParameterKind> excluded;
  for (const std::string& kind : kinds) excluded.insert(parameter_kind(kind));
  std::vector<bool> result;
  for (const ParameterInfo& parameter : parameters) result.push_back(excluded.count(parameter.kind) > 0);
  return result;
}

std::vector<double> decay_by_parameter(const std::vector<ParameterInfo>& parameters, double weight_decay,
                                       const std::vector<std::string>& excluded_kinds) {
  std::vector<double> decay;
  for (bool excluded : excluded_parameters(parameters, excluded_kinds))
    decay.push_back(excluded ? 0 : weight_decay);
  return decay;
}

}  // namespace basin
