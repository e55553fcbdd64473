// defines: what the optimiser tests share: building one from settings, parameters from numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "optim/registry.h"
#include "tests/support/settings.h"

namespace basin::testing {

inline std::unique_ptr<Optimizer> make_test_optimizer(const std::string& name,
                                                      const std::vector<std::string>& settings,
                                                      const std::vector<ParameterInfo>& parameters) {
  const OptimizerEntry& entry = find_entry(optimizer_registry(), name, "optimizer");
  return entry.make(parameters, *options_with(entry, settings));
}

inline ParameterInfo make_parameter(const std::string& name, ParameterKind kind,
                                    const std::vector<double>& values, at::ScalarType dtype = at::kDouble) {
  const at::Tensor leaf = at::tensor(values, at::kDouble).to(dtype).requires_grad_(true);
  return {name, name.substr(0, name.find('.')), kind, leaf};
}

inline void set_gradient(const ParameterInfo& parameter, const std::vector<double>& values) {
  at::Tensor(parameter.tensor).mutable_grad() =
      at::tensor(values, at::kDouble).to(parameter.tensor.scalar_type()).view(parameter.tensor.sizes());
}

inline std::vector<double> values_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

inline double norm_by_hand(const std::vector<double>& values) {
  double squares = 0;
  for (double value : values) squares += value * value;
  return std::sqrt(squares);
}

}  // namespace basin::testing
