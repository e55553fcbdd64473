#include "runs/audit/plan.h"

#include "core/nearest.h"
#include "core/seed.h"
#include "probes/registry.h"

namespace basin {
namespace {

AuditVariant variant(const ProbeEntry& entry, const ProbeAudit::Variant& special,
                     const std::vector<std::string>& sets) {
  AuditVariant made{entry.name, special.name, entry.make_options()};
  OptionTable table;
  table.group(entry.name, [&](OptionTable& t) { made.options->bind(t); });
  for (const std::string& text : entry.audit.cheap) table.set_from_text(entry.name + "." + text, "audit");
  for (const std::string& text : sets)
    if (text.rfind(entry.name + ".", 0) == 0) table.set_from_text(text, "--set");
  for (const std::string& text : special.settings) table.set_from_text(entry.name + "." + text, "audit");
  return made;
}

at::Tensor each(const UnitGroup& group, double factor) {
  return at::full({group.units}, factor, at::kDouble);
}

at::Tensor log_uniform(const UnitGroup& group, double largest, at::Generator& generator) {
  return at::empty({group.units}, at::kDouble).uniform_(-1, 1, generator).mul_(std::log(largest)).exp_();
}

std::vector<AuditTrial> rescalings(const Model& model, const std::vector<UnitGroup>& groups,
                                   at::Generator& generator) {
  constexpr double kStrong = 10;
  std::vector<AuditTrial> trials;
  if (groups.empty()) return trials;
  const UnitGroup& middle = groups[groups.size() / 2];
  for (const double alpha : {2.0, kStrong})
    trials.push_back(
        {"relu_rescale", alpha, Kept::function, relu_rescale(model, middle, each(middle, alpha))});
  std::vector<Symmetry> in_turn, by_unit;
  for (const UnitGroup& group : groups) {
    const double alpha = in_turn.size() % 2 == 0 ? kStrong : 1 / kStrong;
    in_turn.push_back(relu_rescale(model, group, each(group, alpha)));
    by_unit.push_back(relu_rescale(model, group, log_uniform(group, kStrong, generator)));
  }
  trials.push_back({"relu_rescale_all", kStrong, Kept::function, joined(in_turn)});
  trials.push_back({"relu_rescale_units", kStrong, Kept::function, joined(by_unit)});
  return trials;
}

/// Transforms each slot ("momentum/conv1.weight") tensor by tensor.
void transform_optimizer(const Symmetry& symmetry, const NamedTensors& state, const OptimizerTraits& traits) {
  std::map<std::string, NamedTensors> slots;
  for (const auto& [name, tensor] : state) {
    const size_t slash = name.find('/');
    if (slash != std::string::npos) slots[name.substr(0, slash)].emplace_back(name.substr(slash + 1), tensor);
  }
  for (const auto& [slot, tensors] : slots) {
    const int power = contains(traits.weights_in, slot) ? 1 : contains(traits.squares_in, slot) ? -2 : -1;
    apply_symmetry(symmetry, tensors, power);
  }
}

at::Tensor copied(const at::Tensor& tensor) {
  return tensor.is_floating_point() ? tensor.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true) : tensor;
}

}  // namespace

std::vector<AuditTrial> audit_trials(const Model& model, int64_t classes, uint64_t seed) {
  constexpr double kNormScale = 10, kLogitScale = 2;
  at::Generator generator = make_generator(derive_seed(seed, "audit"));
  std::vector<UnitGroup> rescalable;
  std::vector<Symmetry> scales, orders;
  for (const UnitGroup& group : model.unit_groups()) {
    if (group.rescalable) rescalable.push_back(group);
    if (group.normalised) scales.push_back(norm_scale(model, group, kNormScale));
    orders.push_back(unit_permutation(group, at::randperm(group.units, generator, at::kLong)));
  }
  std::vector<AuditTrial> trials = rescalings(model, rescalable, generator);
  if (!scales.empty()) trials.push_back({"norm_scale", kNormScale, Kept::function, joined(scales)});
  if (!orders.empty()) trials.push_back({"unit_permutation", NAN, Kept::function, joined(orders)});
  Symmetry louder = logit_scale(model, classes, kLogitScale);
  if (!louder.changes.empty())
    trials.push_back({"logit_scale", kLogitScale, Kept::decisions, std::move(louder)});
  return trials;
}

std::vector<AuditVariant> audit_variants(const std::vector<std::string>& probes,
                                         const std::vector<std::string>& sets) {
  std::vector<AuditVariant> variants;
  for (const std::string& probe : probes) {
    const ProbeEntry& entry = find_entry(probe_registry(), probe, "probe");
    variants.push_back(variant(entry, {}, sets));
    for (const ProbeAudit::Variant& special : entry.audit.variants)
      variants.push_back(variant(entry, special, sets));
  }
  return variants;
}

Checkpoint transformed(const Checkpoint& checkpoint, const Symmetry& symmetry,
                       const OptimizerTraits& traits) {
  Checkpoint other = checkpoint;
  NamedTensors tensors;
  for (ParameterInfo& parameter : other.parameters) {
    parameter.tensor = copied(parameter.tensor);
    tensors.emplace_back(parameter.name, parameter.tensor);
  }
  for (auto& [name, buffer] : other.buffers) {
    buffer = copied(buffer);
    tensors.emplace_back(name, buffer);
  }
  for (auto& [name, tensor] : other.optimizer) tensor = copied(tensor);
  apply_symmetry(symmetry, tensors);
  if (traits.state_by_weight) {
    transform_optimizer(symmetry, other.optimizer, traits);
  } else {
    other.progress["learning_rate"] = NAN;
  }
  return other;
}

at::Tensor transformed(const at::Tensor& weights, const Model& model, const Symmetry& symmetry) {
  const at::Tensor flat = copied(weights);
  apply_symmetry(symmetry, named_views(model, flat));
  return flat;
}

}  // namespace basin
