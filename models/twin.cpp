#include "models/twin.h"

#include <ATen/ATen.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "models/symmetries.h"

namespace basin {
namespace {

constexpr int kMostSweeps = 200;
constexpr double kAtRest = 1e-13;  // of a factor's logarithm: float64's rounding of sums of squares

using Kinds = std::map<std::string, ParameterKind>;

Kinds kinds_of(const Model& model) {
  Kinds kinds;
  for (const ParameterInfo& parameter : model.parameter_table()) kinds[parameter.name] = parameter.kind;
  return kinds;
}

bool is_norms(ParameterKind kind) {
  return kind == ParameterKind::norm_weight || kind == ParameterKind::norm_bias;
}

class Lengths {
 public:
  Lengths(const Model& model, const NamedTensors& tensors) : kinds_(kinds_of(model)), tensors_(tensors) {}

  /// Sum of squares of the parameters among `axes` for which `counts`.
  double square(const std::vector<UnitAxis>& axes, const std::function<bool(ParameterKind)>& counts) const {
    double sum = 0;
    for (const UnitAxis& axis : axes) {
      const auto kind = kinds_.find(axis.tensor);
      if (kind == kinds_.end() || !counts(kind->second)) continue;
      for (const auto& [name, tensor] : tensors_)
        if (name == axis.tensor) sum += tensor.square().sum().item<double>();
    }
    return sum;
  }
  int64_t weights_among(const std::vector<UnitAxis>& axes) const {
    return std::count_if(axes.begin(), axes.end(), [&](const UnitAxis& axis) {
      const auto kind = kinds_.find(axis.tensor);
      return kind != kinds_.end() && kind->second == ParameterKind::weight;
    });
  }

 private:
  Kinds kinds_;
  const NamedTensors& tensors_;
};

/// Names of the weights whose length does nothing.
std::set<std::string> free_weights(const std::vector<UnitGroup>& groups) {
  std::set<std::string> names;
  for (const UnitGroup& group : groups)
    if (group.normalised)
      for (const UnitAxis& output : group.outputs) names.insert(output.tensor);
  return names;
}

double rescaling_of(const UnitGroup& group, const Lengths& lengths, const std::set<std::string>& free) {
  const double a =
      lengths.square(group.outputs, [&](ParameterKind kind) { return !group.normalised || is_norms(kind); });
  const double b = lengths.square(group.inputs, [](ParameterKind) { return true; });
  const bool any_length = std::all_of(group.inputs.begin(), group.inputs.end(),
                                      [&](const UnitAxis& axis) { return free.contains(axis.tensor); });
  if (a == 0 || b == 0) return 1;
  return any_length ? std::sqrt(static_cast<double>(group.units) / a) : std::pow(b / a, 0.25);
}

double length_of(const UnitGroup& group, const Lengths& lengths) {
  const double square =
      lengths.square(group.outputs, [](ParameterKind kind) { return kind == ParameterKind::weight; });
  const auto weights = static_cast<double>(lengths.weights_among(group.outputs));
  return square == 0 ? 1 : std::sqrt(weights * static_cast<double>(group.units) / square);
}

}  // namespace

NamedTensors equal_norm_twin(const Model& model, const NamedTensors& tensors) {
  NamedTensors twin;
  for (const auto& [name, tensor] : tensors) twin.emplace_back(name, tensor.detach().to(at::kDouble).clone());
  const std::vector<UnitGroup> groups = model.unit_groups();
  const std::set<std::string> free = free_weights(groups);
  const Lengths lengths(model, twin);
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double moved = 0;
    const auto note = [&](double factor) { moved = std::max(moved, std::abs(std::log(factor))); };
    for (const UnitGroup& group : groups) {
      if (!group.rescalable) continue;
      const double alpha = rescaling_of(group, lengths, free);
      note(alpha);
      apply_symmetry(relu_rescale(model, group, at::full({group.units}, alpha, at::kDouble)), twin);
    }
    for (const UnitGroup& group : groups) {
      if (!group.normalised) continue;
      const double c = length_of(group, lengths);
      note(c);
      apply_symmetry(norm_scale(model, group, c), twin);
    }
    if (moved < kAtRest) break;
  }
  return twin;
}

void become_equal_norm_twin(Model& model) {
  const NamedTensors own = named_tensors(model), twin = equal_norm_twin(model, own);
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < own.size(); ++i) own[i].second.detach().copy_(twin[i].second);
}

}  // namespace basin
