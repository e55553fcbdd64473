#include "probes/sharpness_keskar.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <bit>
#include <iterator>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/math/statistics.h"
#include "core/seed.h"
#include "landscape/box.h"
#include "landscape/box_maximum.h"
#include "landscape/displaced_weights.h"
#include "landscape/random_subspace.h"
#include "probes/common.h"
#include "probes/registry.h"

namespace basin {
namespace {

/// The checkpoint: x, L(x) and its gradient, on the host in float64.
struct Base {
  const DisplacedWeights& weights;
  at::Tensor x, gradient;
  double loss = 0;
  double percent() const { return 100.0 / (1.0 + loss); }
};

/// phi over the unit cube of one space and eps: u -> 100 (L(x + A (box u)) - L(x)) / (1 + L(x)).
class PhiFunction {
 public:
  /// `subspace` may be null: the full space.
  PhiFunction(Problem& problem, const Base& base, at::Tensor box, const RandomSubspace* subspace)
      : problem_(problem), base_(base), box_(std::move(box)), subspace_(subspace) {}

  int64_t size() const { return box_.numel(); }

  double operator()(const at::Tensor& u, at::Tensor& gradient) const {
    throw_if_interrupted();
    const at::Tensor z = box_ * u;
    const at::Tensor step = subspace_ ? subspace_->expand(z).to(at::kCPU, at::kDouble) : z;
    base_.weights.move(step);
    double loss = 0;
    gradient = chain(problem_.gradient(&loss));
    return base_.percent() * (loss - base_.loss);
  }

  /// d phi / du from dL/dw.
  at::Tensor chain(const at::Tensor& flat) const {
    const at::Tensor projected = subspace_ ? subspace_->project(flat) : flat;
    return projected.to(at::kCPU, at::kDouble).mul(box_).mul_(base_.percent());
  }

 private:
  Problem& problem_;
  const Base& base_;
  at::Tensor box_;
  const RandomSubspace* subspace_;
};

/// One search per start; phi is the best of them, at least 0 because z = 0 is in the box.
struct PhiSearch {
  double phi = 0;
  std::vector<double> starts;  // NaN where there was no search
  std::vector<int64_t> iterations, evaluations;
  std::vector<std::string> ends;
  bool nonfinite = false;
  // The gauges of docs/probes.md: the largest rise that the gradient promises in the box, and the rise at the
  // corner that promises it, NaN where no search began there.
  double first_order = kNaN, signed_corner = kNaN;

  std::vector<double> found() const {
    std::vector<double> values;
    std::copy_if(starts.begin(), starts.end(), std::back_inserter(values),
                 [](double v) { return !std::isnan(v); });
    return values;
  }
  double spread() const {
    const std::vector<double> values = found();
    if (values.size() < 2) return kNaN;
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return *high - *low;
  }
};

at::Tensor start_point(const std::string& kind, const PhiFunction& phi, const Base& base, uint64_t seed) {
  if (kind == "signed_gradient") return phi.chain(base.gradient).sgn();
  at::Generator generator = make_generator(seed);
  return at::rand({phi.size()}, generator, at::kDouble).mul_(2).sub_(1);
}

/// A search's start with the seed of a random one.
struct Start {
  std::string kind;
  uint64_t seed;
};

std::vector<Start> starts_of(const SharpnessKeskarOptions& options, uint64_t seed) {
  std::vector<Start> starts;
  for (const std::string& kind : options.starts) {
    starts.push_back({kind, seed});
    if (kind != "random") continue;
    for (int64_t i = 1; i < options.restarts; ++i) starts.push_back({kind, derive_seed(seed, "restart", i)});
  }
  return starts;
}

/// How a search ended; see docs/probes.md.
std::string end_of(const CubeMaximum& maximum, int64_t iterations) {
  if (maximum.nonfinite) return "nonfinite";
  if (!maximum.stall.empty()) return "stalled: " + maximum.stall;
  return maximum.iterations < iterations ? "stationary" : "iterations";
}

PhiSearch search(const PhiFunction& phi, const Base& base, const SharpnessKeskarOptions& options,
                 uint64_t seed) {
  PhiSearch found;
  found.first_order = phi.chain(base.gradient).abs().sum().item<double>();
  for (const auto& [kind, start_seed] : starts_of(options, seed)) {
    const at::Tensor start = start_point(kind, phi, base, start_seed);
    // Without a gradient its signs name z = 0, from which no search moves.
    const bool nowhere = kind == "signed_gradient" && start.count_nonzero().item<int64_t>() == 0;
    const CubeMaximum maximum = nowhere ? CubeMaximum{} : maximise_in_cube(phi, start, options.iterations);
    const bool usable = !nowhere && !maximum.nonfinite;
    found.starts.push_back(usable ? maximum.value : kNaN);
    found.iterations.push_back(maximum.iterations);
    found.evaluations.push_back(maximum.evaluations);
    found.ends.push_back(nowhere ? "zero gradient" : end_of(maximum, options.iterations));
    found.nonfinite |= maximum.nonfinite;
    if (usable && kind == "signed_gradient") found.signed_corner = maximum.start_value;
    if (usable) found.phi = std::max(found.phi, maximum.value);
  }
  return found;
}

/// Which quantity: the space with its definition, and eps.
struct Target {
  std::string space, definition, long_name;
  double eps;
  std::string name() const { return fmt::format("phi_{}_{}", space, short_scientific(eps)); }
};

Quantity to_quantity(const Target& target, const std::vector<PhiSearch>& draws) {
  Quantity q;
  q.name = target.name();
  q.definition = target.definition;
  q.long_name = fmt::format("{}, eps = {}", target.long_name, short_scientific(target.eps));
  q.units = "percent";
  std::vector<double> phis;
  for (const PhiSearch& draw : draws) {
    phis.push_back(draw.phi);
    if (draw.found().empty() && q.status == ProbeStatus::ok)
      q.status = ProbeStatus::not_resolved;  // no start to search from
    if (draw.nonfinite) q.status = ProbeStatus::nonfinite;
  }
  const SampleMean phi = mean_of(phis);
  if (q.status != ProbeStatus::ok) {
    q.value = {kNaN};
    q.uncertainty = {kNaN};
    q.uncertainty_kind = UncertaintyKind::lower_bound;
  } else if (draws.size() > 1) {
    q.value = {phi.value};
    q.uncertainty = {phi.standard_error};
    q.uncertainty_kind = UncertaintyKind::standard_error;
  } else {
    q.value = {phi.value};
    q.uncertainty = {draws.front().spread()};
    q.uncertainty_kind = UncertaintyKind::lower_bound;
  }
  return q;
}

void record(const Target& target, const std::vector<PhiSearch>& draws, ProbeResult& result) {
  std::vector<double> values, first_order, signed_corner;
  std::vector<int64_t> iterations, evaluations;
  std::vector<std::string> ends;
  for (const PhiSearch& draw : draws) {
    values.insert(values.end(), draw.starts.begin(), draw.starts.end());
    iterations.insert(iterations.end(), draw.iterations.begin(), draw.iterations.end());
    evaluations.insert(evaluations.end(), draw.evaluations.begin(), draw.evaluations.end());
    ends.insert(ends.end(), draw.ends.begin(), draw.ends.end());
    first_order.push_back(draw.first_order);
    signed_corner.push_back(draw.signed_corner);
  }
  result.attributes.insert(result.attributes.end(), {{target.name() + "_start_values", values},
                                                     {target.name() + "_start_iterations", iterations},
                                                     {target.name() + "_start_evaluations", evaluations},
                                                     {target.name() + "_start_ends", ends},
                                                     {target.name() + "_first_order", first_order},
                                                     {target.name() + "_signed_corner", signed_corner}});
}

class SharpnessKeskar final : public Probe {
 public:
  explicit SharpnessKeskar(SharpnessKeskarOptions options)
      : Probe("sharpness_keskar"), options_(std::move(options)) {
    OptionTable table;  // for callers from C++, whose options no table has seen
    bind_options(table, options_);
    for (const Option& option : table) table.set(option.key, option.get(), "sharpness_keskar");
  }

  ProbeCost expected_cost() const override {
    // Counted: 15.4 to 17.7 evaluations a search of ten iterations.
    const auto subspaces = std::count(options_.spaces.begin(), options_.spaces.end(), "subspace");
    const auto boxes = static_cast<int64_t>(options_.spaces.size()) + subspaces * (options_.draws - 1);
    const auto searches = static_cast<double>(boxes) *
                          static_cast<double>(options_.epsilons.size() * starts_of(options_, 0).size());
    return {1 + searches * (1 + 1.5 * static_cast<double>(options_.iterations)), 0};
  }
  std::vector<Answer> needs() const override { return {Answer::gradient}; }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    Problem& problem = context.problem;
    const int64_t gradients_before = problem.gradients_done();
    {
      const DisplacedWeights weights(problem.parameters());
      Base base{weights, weights.origin().to(at::kCPU), {}, 0};
      base.gradient = problem.gradient(&base.loss);
      for (const std::string& space : options_.spaces) run_space(space, context, base, result);
      result.attributes.emplace_back("loss", base.loss);
    }
    record_settings(result);
    result.attributes.emplace_back("gradients", problem.gradients_done() - gradients_before);
    result.status = gravest_status(result.quantities);
    if (result.status == ProbeStatus::nonfinite)
      result.message = "the loss is not finite at the checkpoint or inside a box";
    if (result.status == ProbeStatus::not_resolved)
      result.message = "the gradient is zero, so its signs give no starting point: add the start \"random\"";
  }

  void run_space(const std::string& space, const ProbeContext& context, const Base& base,
                 ProbeResult& result) {
    if (space != "subspace") {
      const bool relative = space == "relative";
      for (const double eps : options_.epsilons) {
        const at::Tensor box = relative ? relative_box(base.x, eps) : keskar_box(base.x, eps);
        finish({space, "keskar-phi-" + space,
                relative ? "sharpness in a parameter-relative box" : "Keskar sharpness, full space", eps},
               {search_box(context, base, box, nullptr, start_seed(context, space, eps))}, result);
      }
      return;
    }
    std::vector<std::vector<PhiSearch>> draws(options_.epsilons.size());
    const int64_t n = context.problem.parameters().size();
    const int64_t p = std::min(options_.subspace_dim, n);
    const std::string name = fmt::format("subspace_{}_p{}", options_.subspace_distribution, p);
    for (int64_t draw = 0; draw < options_.draws; ++draw) {
      const RandomSubspace subspace(n, p, subspace_distribution(options_.subspace_distribution),
                                    derive_seed(context.seed, "keskar-subspace", draw),
                                    context.problem.dtype(), context.problem.device());
      const at::Tensor coordinates = subspace.coordinates(base.x);
      for (size_t i = 0; i < options_.epsilons.size(); ++i) {
        const double eps = options_.epsilons[i];
        draws[i].push_back(search_box(context, base, keskar_box(coordinates, eps), &subspace,
                                      start_seed(context, fmt::format("subspace-{}", draw), eps)));
      }
    }
    for (size_t i = 0; i < options_.epsilons.size(); ++i) {
      finish({name, "keskar-phi-subspace-" + options_.subspace_distribution,
              fmt::format("Keskar sharpness, random {}-dimensional subspace ({})", p,
                          options_.subspace_distribution),
              options_.epsilons[i]},
             draws[i], result);
    }
    result.attributes.emplace_back("subspace_dim", p);
  }

  /// By what is measured, not by its place in a list: the same eps is searched alike whatever else is
  /// there.
  static uint64_t start_seed(const ProbeContext& context, const std::string& space, double eps) {
    return derive_seed(context.seed, "keskar-start-" + space, std::bit_cast<uint64_t>(eps));
  }

  PhiSearch search_box(const ProbeContext& context, const Base& base, const at::Tensor& box,
                       const RandomSubspace* subspace, uint64_t seed) const {
    if (!std::isfinite(base.loss) || !base.gradient.isfinite().all().item<bool>()) {
      PhiSearch nothing;
      nothing.nonfinite = true;  // no start was searched from
      return nothing;
    }
    return search(PhiFunction(context.problem, base, box, subspace), base, options_, seed);
  }

  static void finish(const Target& target, const std::vector<PhiSearch>& draws, ProbeResult& result) {
    result.quantities.push_back(to_quantity(target, draws));
    record(target, draws, result);
  }

  void record_settings(ProbeResult& result) const {
    result.attributes.insert(result.attributes.end(),
                             {{"solver", std::string("lbfgspp-lbfgsb")},
                              {"epsilons", options_.epsilons},
                              {"iterations", options_.iterations},
                              {"starts", options_.starts},
                              {"subspace_distribution", options_.subspace_distribution},
                              {"draws", options_.draws}});
  }

  SharpnessKeskarOptions options_;
};

}  // namespace

void bind_options(OptionTable& table, SharpnessKeskarOptions& options) {
  table.add("epsilons", options.epsilons, distinct(greater_than(0)), "half widths of the box");
  table.add("spaces", options.spaces, distinct(one_of({"full", "subspace", "relative"})),
            "kinds of box: all weights, a random subspace, or relative to the weights; docs/probes.md");
  table.add("starts", options.starts, distinct(one_of({"random", "signed_gradient"})),
            "where the searches begin; the best result counts");
  table.add("restarts", options.restarts, between(1, 1000),
            "searches from random points, for the start random");
  table.add("iterations", options.iterations, between(1, 10000), "L-BFGS-B iterations per start");
  table.add("subspace_dim", options.subspace_dim, at_least(1), "dimension of the random subspace");
  table.add("subspace_distribution", options.subspace_distribution, one_of({"gaussian", "orthonormal"}),
            "distribution of A; the two differ by about sqrt(n) in step length and are never pooled");
  table.add("draws", options.draws, between(1, 1000),
            "draws of A; more than one give a mean and a standard error");
}

std::unique_ptr<Probe> make_sharpness_keskar(const SharpnessKeskarOptions& options) {
  return std::make_unique<SharpnessKeskar>(options);
}

ProbeEntry sharpness_keskar_entry() {
  return probe_entry<SharpnessKeskarOptions, make_sharpness_keskar>({
      .name = "sharpness_keskar",
      .label = "Keskar sharpness",
      .help = "Keskar's phi in three kinds of box",
      .version = 3,
      .definitions = {"keskar-phi-full", "keskar-phi-subspace-gaussian", "keskar-phi-subspace-orthonormal",
                      "keskar-phi-relative"},
      .entries = {"phi_full_*", "phi_subspace_*", "phi_relative_*"},
      .headlines = {{"phi_full_1e-3", "φ (ε = 1e-3)", "φ, full space, ε = 1e-3 (%)"},
                    {"phi_relative_1e-3", "", "φ, box relative to |w| (%)"}},
      .bound_error = "starts apart by",
      .audit = {.cheap = {"epsilons=[1e-3]"},
                .variants = {{"", {"spaces=[\"subspace\"]", "subspace_distribution=orthonormal"}}}},
  });
}

}  // namespace basin
