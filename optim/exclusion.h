// defines: excluded_parameters, which parameters a list of kinds leaves out of weight decay or trust ratios.
#pragma once

#include <string>
#include <vector>

#include "core/options.h"
#include "core/parameter.h"

namespace basin {

/// bias, norm_weight and norm_bias: what code bases exclude by default, here by kind and not by name or
/// shape.
const std::vector<std::string>& default_exclusions();
/// For option tables: each element is a parameter kind.
Constraint parameter_kinds();
/// One entry a parameter.
std::vector<bool> excluded_parameters(const std::vector<ParameterInfo>& parameters,
                                      const std::vector<std::string>& kinds);
/// weight_decay for each parameter, 0 for the excluded ones.
std::vector<double> decay_by_parameter(const std::vector<ParameterInfo>& parameters, double weight_decay,
                                       const std::vector<std::string>& excluded_kinds);

}  // namespace basin
