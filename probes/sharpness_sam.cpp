#include "probes/sharpness_sam.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/interrupt.h"
#include "core/math/statistics.h"
#include "landscape/displaced_weights.h"
#include "optim/steepest_ascent.h"
#include "probes/common.h"
#include "probes/registry.h"

namespace basin {
namespace {

/// SAM or ASAM with its radii.
struct Variant {
  std::string name, definition;  // "asam", "asam-all"
  AscentScale scale;
  double eta;
  std::vector<double> rhos;
};

/// The rise for one example set, variant and rho.
struct Rise {
  double first_order = 0, ascended = 0;  // the latter NaN where there is no direction
  ProbeStatus ascended_status() const {
    if (first_order == 0) return ProbeStatus::not_resolved;
    return std::isfinite(first_order) && std::isfinite(ascended) ? ProbeStatus::ok : ProbeStatus::nonfinite;
  }
  ProbeStatus first_order_status() const {
    return std::isfinite(first_order) ? ProbeStatus::ok : ProbeStatus::nonfinite;
  }
};
/// All rises of one example set, by variant and rho, one after another.
using Rises = std::vector<Rise>;

class SharpnessSam final : public Probe {
 public:
  explicit SharpnessSam(const SharpnessSamOptions& options) : Probe("sharpness_sam"), options_(options) {}

  ProbeCost expected_cost() const override {
    const auto radii = static_cast<double>(options_.rhos.size() + options_.asam_rhos.size());
    return {2 + 2 * (1 + radii) / 3, 0};  // a forward pass is a third of a gradient
  }
  std::vector<Answer> needs() const override {
    return {Answer::loss, Answer::gradient, Answer::batch_gradient, Answer::losses};
  }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    Problem& problem = context.problem;
    const DisplacedWeights weights(problem.parameters());
    const Rises whole = rises_of(problem, weights);
    const ExampleGroups groups = example_groups(problem.examples(), options_.group_size, context.seed);
    std::vector<Rises> of_groups;
    for (const at::Tensor& index : groups.index) {
      of_groups.push_back(rises_of(*problem.part(index), weights));
    }
    const std::string units = problem.loss_units();
    add_quantities({whole}, 0, units, result);
    add_quantities(of_groups, groups.size, units, result);
    const auto count = static_cast<int64_t>(groups.index.size());
    const double passes =
        1 + static_cast<double>(count * groups.size) / static_cast<double>(problem.examples());
    result.attributes.insert(result.attributes.end(),
                             {{"group_size", groups.size},
                              {"groups", count},
                              {"gradients", passes},
                              {"forwards", passes * static_cast<double>(1 + whole.size())}});
    conclude(result);
  }

  static void conclude(ProbeResult& result) {
    result.status = gravest_status(result.quantities);
    if (result.status == ProbeStatus::nonfinite)
      result.message = "the loss or its gradient is not finite at the checkpoint or a step away";
    if (result.status == ProbeStatus::not_resolved)
      result.message =
          "a set of examples has no gradient, and so no direction to ascend, or there is one group only";
  }

  std::vector<Variant> variants() const {
    const bool all = options_.scaled == "all";
    return {{"sam", "sam", AscentScale::none, 0, options_.rhos},
            {"asam", all ? "asam-all" : "asam", all ? AscentScale::all : AscentScale::weights, options_.eta,
             options_.asam_rhos}};
  }

  Rises rises_of(Problem& problem, const DisplacedWeights& weights) const {
    throw_if_interrupted();
    const ParameterVector& vector = problem.parameters();
    const double base = problem.loss();  // by the pass that is made a step away, with the same rounding
    const std::vector<at::Tensor> gradient = vector.unflatten(problem.gradient());
    Rises rises;
    for (const Variant& variant : variants()) {
      const Ascent ascent = steepest_ascent(vector.parameters(), gradient, variant.scale, variant.eta);
      const at::Tensor direction = vector.flatten(ascent.direction);
      for (const double rho : variant.rhos) {
        rises.push_back({rho * ascent.slope, kNaN});
        if (!(ascent.slope > 0)) continue;
        weights.move(direction * (rho / ascent.slope));
        rises.back().ascended = problem.loss() - base;
      }
      weights.put_back();  // the next scale T is that of the weights themselves
    }
    return rises;
  }

  /// group_size 0: one set, of all examples.
  void add_quantities(const std::vector<Rises>& sets, int64_t group_size, const std::string& units,
                      ProbeResult& result) const {
    const std::string groups = group_size > 0 ? fmt::format("_m{}", group_size) : "";
    size_t column = 0;
    for (const Variant& variant : variants()) {
      for (const double rho : variant.rhos) {
        const std::string tail = fmt::format("{}_{}", groups, short_scientific(rho));
        const std::string where =
            fmt::format("rho = {}{}", short_scientific(rho),
                        group_size > 0 ? fmt::format(", groups of {}", group_size) : "");
        Quantity ascended = named({variant.name + tail, variant.name + " sharpness, ascended, " + where,
                                   variant.definition + "-ascended", units},
                                  group_size > 0 ? UncertaintyKind::standard_error : UncertaintyKind::none);
        Quantity first_order = ascended;
        first_order.name = variant.name + "_first" + tail;
        first_order.long_name = variant.name + " sharpness, first order, " + where;
        first_order.definition = variant.definition + "-first-order";
        fill(sets, column, &Rise::ascended, &Rise::ascended_status, ascended);
        fill(sets, column, &Rise::first_order, &Rise::first_order_status, first_order);
        result.quantities.push_back(std::move(ascended));
        result.quantities.push_back(std::move(first_order));
        ++column;
      }
    }
  }

  static void fill(const std::vector<Rises>& sets, size_t column, double Rise::*number,
                   ProbeStatus (Rise::*status)() const, Quantity& q) {
    std::vector<double> values;
    std::vector<ProbeStatus> statuses;
    for (const Rises& rises : sets) {
      values.push_back(rises[column].*number);
      statuses.push_back((rises[column].*status)());
    }
    q.status = gravest_status(statuses);
    const bool without_error = q.uncertainty_kind == UncertaintyKind::standard_error && sets.size() < 2;
    if (without_error && q.status == ProbeStatus::ok) q.status = ProbeStatus::not_resolved;
    const SampleMean mean = mean_of(values);
    q.value = {q.status == ProbeStatus::ok ? mean.value : kNaN};
    q.uncertainty = {q.status != ProbeStatus::ok                   ? kNaN
                     : q.uncertainty_kind == UncertaintyKind::none ? 0
                                                                   : mean.standard_error};
  }

  SharpnessSamOptions options_;
};

const std::vector<Preset<SharpnessSamOptions>>& sam_variants() {
  static const std::vector<Preset<SharpnessSamOptions>> presets = [] {
    SharpnessSamOptions davda54;
    davda54.eta = 0;
    davda54.scaled = "all";
    davda54.asam_rhos = {2.0};
    return std::vector{preset("none", SharpnessSamOptions()), preset("davda54", davda54)};
  }();
  return presets;
}

void bind_fields(OptionTable& table, SharpnessSamOptions& options) {
  table.add("rhos", options.rhos, distinct(greater_than(0)), "radii of SAM");
  table.add("asam_rhos", options.asam_rhos, distinct(greater_than(0)),
            "radii of ASAM; not comparable with SAM's");
  table.add("eta", options.eta, at_least(0), "ASAM: T = |w| + eta");
  table.add("scaled", options.scaled, one_of({"weights", "all"}),
            "ASAM: parameters that T scales; weights: all but biases, for which T is 1");
  table.add("group_size", options.group_size, at_least(1),
            "m: examples per group; at most half of those measured");
}

}  // namespace

SharpnessSamOptions::SharpnessSamOptions() { preset = values_of = "none"; }

void bind_options(OptionTable& table, SharpnessSamOptions& options) {
  bind_presets(table, options, sam_variants(), bind_fields,
               "reproduce a published tool: its values for all options below that aren't set; docs/probes.md",
               "compat");
}

std::unique_ptr<Probe> make_sharpness_sam(const SharpnessSamOptions& options) {
  return std::make_unique<SharpnessSam>(options);
}

ProbeEntry sharpness_sam_entry() {
  return probe_entry<SharpnessSamOptions, make_sharpness_sam>({
      .name = "sharpness_sam",
      .label = "SAM sharpness",
      .help = "SAM and ASAM sharpness, over all examples and per group",
      .version = 1,
      .definitions = {"sam-first-order", "sam-ascended", "asam-first-order", "asam-ascended",
                      "asam-all-first-order", "asam-all-ascended"},
      .entries = {"sam_*", "asam_*"},
      .audit = {.variants = {{"eta=0", {"eta=0"}},
                             {"", {"scaled=all"}},
                             {"eta=0, scaled=all", {"eta=0", "scaled=all"}}}},
  });
}

}  // namespace basin
