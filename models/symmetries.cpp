#include "models/symmetries.h"

#include <ATen/ATen.h>

namespace basin {
namespace {

/// Whether it is one of a norm's own parameters: not the statistics, and not of the layer before it.
bool is_norm_parameter(const Model& model, const std::string& name) {
  const auto is_it = [&](const ParameterInfo& p) {
    return p.name == name && (p.kind == ParameterKind::norm_weight || p.kind == ParameterKind::norm_bias);
  };
  const std::vector<ParameterInfo>& table = model.parameter_table();
  return std::any_of(table.begin(), table.end(), is_it);
}

/// A number for each entry of the axis, to be multiplied with the tensor.
at::Tensor along_axis(const at::Tensor& by_unit, const UnitAxis& axis, const at::Tensor& tensor) {
  std::vector<int64_t> shape(static_cast<size_t>(tensor.dim()), 1);
  shape[static_cast<size_t>(axis.axis)] = tensor.size(axis.axis);
  return by_unit.repeat_interleave(axis.repeat).view(shape);
}

at::Tensor reordered(const at::Tensor& tensor, const UnitAxis& axis, const at::Tensor& order) {
  const at::Tensor within = at::arange(axis.repeat, at::kLong);
  const at::Tensor index = (order.unsqueeze(1) * axis.repeat + within).flatten();
  return tensor.index_select(axis.axis, index.to(tensor.device()));
}

void apply_change(const TensorChange& change, at::Tensor tensor, int power) {
  if (change.factor.defined()) {
    const at::Tensor factor = along_axis(change.factor.pow(power), change.axis, tensor);
    tensor.mul_(factor.to(tensor.options()));
  }
  if (power == 1) tensor.add_(change.shift);
  if (change.order.defined()) tensor.copy_(reordered(tensor, change.axis, change.order));
}

}  // namespace

Symmetry relu_rescale(const Model& model, const UnitGroup& group, const at::Tensor& alpha) {
  TORCH_CHECK(group.rescalable, group.name, " can't be rescaled");
  Symmetry symmetry;
  for (const UnitAxis& output : group.outputs) {
    if (!group.normalised || is_norm_parameter(model, output.tensor))
      symmetry.changes.push_back({output, alpha});
  }
  for (const UnitAxis& input : group.inputs) symmetry.changes.push_back({input, alpha.reciprocal()});
  return symmetry;
}

Symmetry norm_scale(const Model& model, const UnitGroup& group, double c) {
  TORCH_CHECK(group.normalised, "no batch norm follows ", group.name);
  const at::Tensor factor = at::full({group.units}, c, at::kDouble);
  Symmetry symmetry;
  for (const UnitAxis& output : group.outputs) {
    if (is_norm_parameter(model, output.tensor)) continue;
    const bool variance = output.tensor.ends_with(".running_var");
    symmetry.changes.push_back(
        {output, variance ? factor.square() : factor, variance ? (c * c - 1) * group.norm_eps : 0});
  }
  return symmetry;
}

Symmetry unit_permutation(const UnitGroup& group, const at::Tensor& order) {
  Symmetry symmetry;
  for (const std::vector<UnitAxis>* axes : {&group.outputs, &group.inputs})
    for (const UnitAxis& axis : *axes) symmetry.changes.push_back({axis, {}, 0, order});
  return symmetry;
}

Symmetry logit_scale(const Model& model, int64_t classes, double c) {
  Symmetry symmetry;
  const std::string last = model.parameter_table().back().layer;
  for (const ParameterInfo& parameter : model.parameter_table()) {
    if (parameter.layer != last) continue;
    if (parameter.tensor.size(0) != classes) return {};
    symmetry.changes.push_back({{parameter.name, 0, 1}, at::full({classes}, c, at::kDouble)});
  }
  return symmetry;
}

Symmetry joined(const std::vector<Symmetry>& symmetries) {
  Symmetry all;
  for (const Symmetry& one : symmetries)
    all.changes.insert(all.changes.end(), one.changes.begin(), one.changes.end());
  return all;
}

void apply_symmetry(const Symmetry& symmetry, const NamedTensors& tensors, int power) {
  const at::NoGradGuard no_grad;
  for (const TensorChange& change : symmetry.changes)
    for (const auto& [name, tensor] : tensors)
      if (name == change.axis.tensor) apply_change(change, tensor, power);
}

NamedTensors named_views(const Model& model, const at::Tensor& flat) {
  NamedTensors views;
  int64_t first = 0;
  for (const ParameterInfo& parameter : model.parameter_table()) {
    views.emplace_back(parameter.name,
                       flat.narrow(0, first, parameter.tensor.numel()).view(parameter.tensor.sizes()));
    first += parameter.tensor.numel();
  }
  return views;
}

NamedTensors named_tensors(const Model& model) {
  NamedTensors tensors = model.buffer_table();
  for (const ParameterInfo& parameter : model.parameter_table())
    tensors.emplace_back(parameter.name, parameter.tensor);
  return tensors;
}

}  // namespace basin
