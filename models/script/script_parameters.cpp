#include "models/script/script_parameters.h"

namespace basin {
namespace {

bool is_norm(const std::string& name) { return name.find("Norm") != std::string::npos; }

bool is_known_norm(const std::string& name) {
  static const std::set<std::string> known = {"BatchNorm1d",    "BatchNorm2d",    "BatchNorm3d", "LayerNorm",
                                              "InstanceNorm1d", "InstanceNorm2d", "GroupNorm",   "RMSNorm"};
  return known.count(name) > 0;
}

bool is_linear_map(const std::string& name) {
  static const std::set<std::string> known = {"Linear", "Conv1d", "Conv2d", "Conv3d"};
  return known.count(name) > 0;
}

}  // namespace

std::string class_of(const torch::jit::Module& module) {
  const auto name = module.type()->name();
  return name ? name->name() : "";
}

ParameterKind kind_of(const torch::jit::Module& module, const std::string& name,
                      const at::Tensor& parameter) {
  const bool bias = name.ends_with("bias");
  if (is_norm(class_of(module))) return bias ? ParameterKind::norm_bias : ParameterKind::norm_weight;
  if (bias) return ParameterKind::bias;
  return parameter.dim() > 1 ? ParameterKind::weight : ParameterKind::norm_weight;
}

bool redraw(const torch::jit::Module& module, const std::string& name, at::Tensor parameter,
            at::Generator& generator) {
  const at::NoGradGuard no_grad;
  const std::string type = class_of(module);
  if (is_known_norm(type)) {
    parameter.fill_(name.ends_with("bias") ? 0 : 1);
  } else if (is_linear_map(type)) {
    const at::Tensor weight = module.attr("weight").toTensor();
    const double bound =
        1 / std::sqrt(static_cast<double>(weight.numel()) / static_cast<double>(weight.size(0)));
    parameter.uniform_(-bound, bound, generator);
  } else if (type == "Embedding") {
    parameter.normal_(0, 1, generator);
  } else {
    return false;
  }
  return true;
}

}  // namespace basin
