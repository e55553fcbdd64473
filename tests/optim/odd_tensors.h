// defines: odd_tensors() and every method that is to step them.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/seed.h"
#include "optim/lamb.h"
#include "optim/lars.h"
#include "tests/optim/optim_support.h"

namespace basin::testing {

using MethodAndPreset = std::pair<std::string, std::string>;  // no preset: ""

/// Every registered method, and LARS and LAMB under every preset.
inline std::vector<MethodAndPreset> methods_and_presets() {
  std::vector<MethodAndPreset> all;
  for (const std::string& name : names_of(optimizer_registry())) all.emplace_back(name, "");
  for (const auto& preset : lars_presets()) all.emplace_back("lars", preset.name);
  for (const auto& preset : lamb_presets()) all.emplace_back("lamb", preset.name);
  return all;
}

struct NameOfMethod {
  std::string operator()(const ::testing::TestParamInfo<MethodAndPreset>& info) const {
    return info.param.first + (info.param.second.empty() ? "" : "_" + info.param.second);
  }
};

inline std::vector<std::string> settings_of(const MethodAndPreset& method) {
  if (method.second.empty()) return {};
  return {"preset=" + method.second};
}

/// A tensor of several chunks, one that doesn't fill a warp, a scalar, an empty one, one of zeros.
inline std::vector<ParameterInfo> odd_tensors(at::Device device, at::ScalarType dtype) {
  at::Generator generator = make_generator(3);
  std::vector<ParameterInfo> parameters;
  for (const auto& [name, kind, sizes] :
       {std::tuple{"fc.weight", ParameterKind::weight, std::vector<int64_t>{300, 701}},
        {"conv.weight", ParameterKind::weight, {4, 3, 3, 3}},
        {"conv.bias", ParameterKind::bias, {4}},
        {"scale.weight", ParameterKind::norm_weight, {}},
        {"none.weight", ParameterKind::weight, {0, 3}},
        {"zero.weight", ParameterKind::weight, {5, 7}}}) {
    at::Tensor values = at::empty(sizes, at::kFloat).normal_(0, 0.5, generator);
    if (std::string(name) == "zero.weight") values.zero_();
    parameters.push_back({name, "layer", kind, values.to(device, dtype).requires_grad_(true)});
  }
  return parameters;
}

/// Five, with gradients that grow.
inline void take_steps(Optimizer& optimizer, const std::vector<ParameterInfo>& parameters) {
  at::Generator generator = make_generator(4);
  for (int t = 0; t < 5; ++t) {
    for (const ParameterInfo& p : parameters) {
      const at::Tensor gradient = at::empty(p.tensor.sizes(), at::kFloat).normal_(0, 0.1 + t, generator);
      at::Tensor(p.tensor).mutable_grad() = gradient.to(p.tensor.options());
    }
    optimizer.set_learning_rate(0.01 * (1 + t));
    optimizer.step();
  }
}

}  // namespace basin::testing
