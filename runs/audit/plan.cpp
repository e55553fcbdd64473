#include "runs/audit/plan.h"

#include "core/seed.h"
#include "probes/registry.h"

namespace basin {
namespace {

using Settings = std::vector<std::string>;

/// What an audit asks is whether a number moves, not what it is: fewer draws and pairs will do.
const std::map<std::string, Settings>& cheap_settings() {
  static const std::map<std::string, Settings> table{
      {"top_eigenvalues", {"count=1"}},
      {"curvature", {"count=1", "starts=3", "steps=4", "trace_samples=8", "density_points=2"}},
      {"sharpness_keskar", {"epsilons=[1e-3]"}},
      {"sharpness_adaptive", {"iterations=10"}},
      {"pac_bayes", {"draws=6", "tolerance=0.05"}},
      {"batch_sharpness", {"batch_size=32", "batches=32"}},
      {"noise_curvature", {"count=1", "groups=8", "trace_samples=6"}},
      {"fisher_rao", {"forms=[\"empirical\", \"model\", \"closed_form\"]"}},
      {"weight_norms", {"by_layer=true", "operator_norms=true"}},
  };
  return table;
}

/// Besides the usual ones; under a name where the definitions' ids don't say what differs.
struct FurtherSettings {
  std::string probe, name;
  Settings settings;
};

/// Without the constant that keeps weights of size 0 moving; ASAM's biases with and without a scale of their
/// own; other methods, and variants of tools.
const std::vector<FurtherSettings>& further_settings() {
  static const std::vector<FurtherSettings> table{
      {"sharpness_sam", "eta=0", {"eta=0"}},
      {"sharpness_sam", "", {"scaled=all"}},
      {"sharpness_sam", "eta=0, scaled=all", {"eta=0", "scaled=all"}},
      {"sharpness_adaptive", "eta=0", {"eta=0"}},
      {"sharpness_adaptive", "", {"compat=sharpness_vs_generalization", "measures=[\"worst_l2\"]"}},
      {"sharpness_keskar", "", {"spaces=[\"subspace\"]", "subspace_distribution=orthonormal"}},
      {"pac_bayes", "eps=0", {"eps=0", "forms=[\"magnitude\"]"}},
      {"pac_bayes", "", {"compat=rgm"}},
      {"curvature", "", {"compat=pyhessian"}},
      {"relative_flatness", "", {"method=hessian"}},
  };
  return table;
}

AuditVariant variant(const std::string& probe, const std::string& name, const Settings& special,
                     const Settings& sets) {
  AuditVariant made{probe, name, find_entry(probe_registry(), probe, "probe").make_options()};
  OptionTable table;
  table.group(probe, [&](OptionTable& t) { made.options->bind(t); });
  const auto cheap = cheap_settings().find(probe);
  if (cheap != cheap_settings().end())
    for (const std::string& text : cheap->second) table.set_from_text(probe + "." + text, "audit");
  for (const std::string& text : sets)
    if (text.rfind(probe + ".", 0) == 0) table.set_from_text(text, "--set");
  for (const std::string& text : special) table.set_from_text(probe + "." + text, "audit");
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
    trials.push_back({"relu_rescale", alpha, "function", relu_rescale(model, middle, each(middle, alpha))});
  std::vector<Symmetry> in_turn, by_unit;
  for (const UnitGroup& group : groups) {
    const double alpha = in_turn.size() % 2 == 0 ? kStrong : 1 / kStrong;
    in_turn.push_back(relu_rescale(model, group, each(group, alpha)));
    by_unit.push_back(relu_rescale(model, group, log_uniform(group, kStrong, generator)));
  }
  trials.push_back({"relu_rescale_all", kStrong, "function", joined(in_turn)});
  trials.push_back({"relu_rescale_units", kStrong, "function", joined(by_unit)});
  return trials;
}

/// Transforms each slot ("momentum/conv1.weight") tensor by tensor. Second moments are squares.
void transform_optimizer(const Symmetry& symmetry, const NamedTensors& state) {
  std::map<std::string, NamedTensors> slots;
  for (const auto& [name, tensor] : state) {
    const size_t slash = name.find('/');
    if (slash != std::string::npos) slots[name.substr(0, slash)].emplace_back(name.substr(slash + 1), tensor);
  }
  for (const auto& [slot, tensors] : slots)
    apply_symmetry(symmetry, tensors, slot == "second_moment" ? -2 : -1);
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
  if (!scales.empty()) trials.push_back({"norm_scale", kNormScale, "function", joined(scales)});
  if (!orders.empty()) trials.push_back({"unit_permutation", NAN, "function", joined(orders)});
  Symmetry louder = logit_scale(model, classes, kLogitScale);
  if (!louder.changes.empty()) trials.push_back({"logit_scale", kLogitScale, "decisions", std::move(louder)});
  return trials;
}

std::vector<AuditVariant> audit_variants(const std::vector<std::string>& probes,
                                         const std::vector<std::string>& sets) {
  std::vector<AuditVariant> variants;
  for (const std::string& probe : probes) {
    variants.push_back(variant(probe, "", {}, sets));
    for (const FurtherSettings& further : further_settings())
      if (further.probe == probe) variants.push_back(variant(probe, further.name, further.settings, sets));
  }
  return variants;
}

Checkpoint transformed(const Checkpoint& checkpoint, const Symmetry& symmetry) {
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
  transform_optimizer(symmetry, other.optimizer);
  return other;
}

at::Tensor transformed(const at::Tensor& weights, const Model& model, const Symmetry& symmetry) {
  const at::Tensor flat = copied(weights);
  NamedTensors views;
  int64_t offset = 0;
  for (const ParameterInfo& parameter : model.parameter_table()) {
    views.emplace_back(parameter.name,
                       flat.narrow(0, offset, parameter.tensor.numel()).view(parameter.tensor.sizes()));
    offset += parameter.tensor.numel();
  }
  apply_symmetry(symmetry, views);
  return flat;
}

}  // namespace basin
