#include "models/unit_sources.h"

namespace basin {
namespace {

/// Undefined where the model has no tensor of that name.
at::Tensor tensor_named(const Model& model, const std::string& name) {
  for (const ParameterInfo& parameter : model.parameter_table())
    if (parameter.name == name) return parameter.tensor;
  for (const auto& [buffer_name, buffer] : model.buffer_table())
    if (buffer_name == name) return buffer;
  return {};
}

bool has(const Model& model, const std::string& name) { return tensor_named(model, name).defined(); }

void append_outputs(UnitGroup& group, const Model& model, const UnitSource& source) {
  for (const std::string& name :
       {source.layer + ".weight", source.layer + ".bias", source.norm + ".weight", source.norm + ".bias",
        source.norm + ".running_mean", source.norm + ".running_var"}) {
    if (has(model, name)) group.outputs.push_back({name, 0, 1});
  }
}

}  // namespace

void append_unit_group(std::vector<UnitGroup>& groups, const Model& model, bool relu,
                       const std::vector<UnitSource>& sources, const std::vector<std::string>& readers,
                       double norm_eps) {
  UnitGroup group;
  group.name = sources.front().layer;
  group.units = tensor_named(model, group.name + ".weight").size(0);
  group.rescalable = relu;
  for (const UnitSource& source : sources) {
    const bool norm = has(model, source.norm + ".bias");  // every norm has one
    group.normalised = has(model, source.norm + ".running_mean");
    if (norm && !group.normalised) return;  // by group
    if (norm && !has(model, source.norm + ".weight")) group.rescalable = false;
    append_outputs(group, model, source);
  }
  if (group.normalised) group.norm_eps = norm_eps;
  for (const std::string& reader : readers) {
    const std::string name = reader + ".weight";
    group.inputs.push_back({name, 1, tensor_named(model, name).size(1) / group.units});
  }
  groups.push_back(std::move(group));
}

}  // namespace basin
