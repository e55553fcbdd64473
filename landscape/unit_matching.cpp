#include "landscape/unit_matching.h"

#include "core/error.h"
#include "core/seed.h"
#include "landscape/linear_assignment.h"
#include "landscape/state_vector.h"
#include "models/symmetries.h"

namespace basin {
namespace {

/// In the order of the model's table.
NamedTensors copied_parameters(const Model& model) {
  NamedTensors tensors;
  for (const ParameterInfo& parameter : model.parameter_table())
    tensors.emplace_back(parameter.name, parameter.tensor.detach().to(at::kDouble).cpu().clone());
  return tensors;
}

/// A row per unit: all that belongs to it on this axis.
at::Tensor by_unit(const at::Tensor& tensor, const UnitAxis& axis, int64_t units) {
  return tensor.movedim(axis.axis, 0).reshape({units, -1});
}

/// The parameters of both networks, those of `moved` in the order found so far.
class Matching {
 public:
  Matching(const std::vector<UnitGroup>& groups, NamedTensors fixed, NamedTensors moved)
      : groups_(groups), fixed_(std::move(fixed)), moved_(std::move(moved)) {
    for (const UnitGroup& group : groups_) order_.push_back(at::arange(group.units, at::kLong));
  }

  /// Whether an order of any group changed.
  bool sweep(at::Generator& generator) {
    const at::Tensor turn = at::randperm(static_cast<int64_t>(groups_.size()), generator, at::kLong);
    bool changed = false;
    for (int64_t i = 0; i < turn.numel(); ++i)
      changed = improve(static_cast<size_t>(turn[i].item<int64_t>())) || changed;
    return changed;
  }

  double distance() const {
    double sum = 0;
    for (size_t i = 0; i < fixed_.size(); ++i)
      sum += (fixed_[i].second - moved_[i].second).square().sum().item<double>();
    return std::sqrt(sum);
  }
  const std::vector<at::Tensor>& order() const { return order_; }

 private:
  bool improve(size_t g) {
    const at::Tensor best = at::tensor(best_assignment(scores(groups_[g])), at::kLong);
    if (best.equal(at::arange(groups_[g].units, at::kLong))) return false;
    const double before = similarity();
    apply_symmetry(unit_permutation(groups_[g], best), moved_);
    // Beyond rounding: two orders of the same worth would take turns for ever.
    if (similarity() - before <= 1e-12 * std::abs(before)) {
      apply_symmetry(unit_permutation(groups_[g], best.argsort()), moved_);
      return false;
    }
    order_[g] = order_[g].index_select(0, best);
    return true;
  }

  // [units, units]: <fixed's unit i, moved's unit j>. Buffers are in neither list and don't count.
  at::Tensor scores(const UnitGroup& group) const {
    at::Tensor sum = at::zeros({group.units, group.units}, at::kDouble);
    for (const std::vector<UnitAxis>* axes : {&group.outputs, &group.inputs}) {
      for (const UnitAxis& axis : *axes) {
        for (size_t i = 0; i < fixed_.size(); ++i) {
          if (fixed_[i].first != axis.tensor) continue;
          sum.addmm_(by_unit(fixed_[i].second, axis, group.units),
                     by_unit(moved_[i].second, axis, group.units).t());
        }
      }
    }
    return sum;
  }

  double similarity() const {
    double sum = 0;
    for (size_t i = 0; i < fixed_.size(); ++i)
      sum += (fixed_[i].second * moved_[i].second).sum().item<double>();
    return sum;
  }

  const std::vector<UnitGroup>& groups_;
  NamedTensors fixed_, moved_;
  std::vector<at::Tensor> order_;
};

}  // namespace

UnitMatching match_units(Model& model, const at::Tensor& fixed, const at::Tensor& moved, uint64_t seed,
                         int64_t most_sweeps) {
  const std::vector<UnitGroup> groups = model.unit_groups();
  if (groups.empty()) throw ConfigError("this network has no hidden units that can be permuted");
  const at::NoGradGuard no_grad;
  const StateVector states(model);
  const at::Tensor was = states.gather();
  const auto parameters_at = [&](const at::Tensor& state) {
    states.scatter(state, true);
    return copied_parameters(model);
  };
  NamedTensors at_fixed = parameters_at(fixed), at_moved = parameters_at(moved);
  Matching matching(groups, std::move(at_fixed), std::move(at_moved));
  UnitMatching found;
  found.distance_before = matching.distance();
  at::Generator generator = make_generator(derive_seed(seed, "unit-matching"));
  while (found.sweeps < most_sweeps && !found.converged) {
    ++found.sweeps;
    found.converged = !matching.sweep(generator);
  }
  found.distance_after = matching.distance();
  found.order = matching.order();
  for (size_t g = 0; g < groups.size(); ++g) {  // the model is at `moved`
    found.groups.push_back(groups[g].name);
    apply_symmetry(unit_permutation(groups[g], found.order[g]), named_tensors(model));
  }
  found.state = states.gather();
  states.scatter(was, true);
  return found;
}

}  // namespace basin
