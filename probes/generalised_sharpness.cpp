#include "probes/generalised_sharpness.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/math/tensor_norms.h"
#include "core/seed.h"
#include "hessian/quadratic_maximum.h"
#include "probes/common.h"
#include "probes/estimators/norm_ball.h"
#include "probes/registry.h"

namespace basin {
namespace {

constexpr int64_t kPowerSteps = 4;

struct NamedNorm {
  DescentNorm norm;
  std::string name, in_words;
};

const NamedNorm& named_norm(const std::string& name) {
  static const std::vector<NamedNorm> norms{{DescentNorm::linf, "linf", "the largest entry"},
                                            {DescentNorm::spectral, "spectral", "the spectral norm"}};
  return *std::find_if(norms.begin(), norms.end(), [&](const NamedNorm& n) { return n.name == name; });
}

/// The searches in one ball.
struct BallSearch {
  std::vector<QuadraticMaximum> ends;  // the first from the gradient
  double dual_norm = kNaN;             // of the gradient

  const QuadraticMaximum& best() const {
    return *std::max_element(ends.begin(), ends.end(),
                             [](const auto& a, const auto& b) { return a.value < b.value; });
  }
  double spread() const {
    if (ends.size() < 2) return kNaN;
    const auto [low, high] = std::minmax_element(
        ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
    return high->value - low->value;
  }
  bool nonfinite() const {
    return ends.empty() || std::any_of(ends.begin(), ends.end(), [](const auto& e) { return e.nonfinite; });
  }
};

/// A normal vector after some steps of power iteration, mostly in the steepest directions. From a plain one, searches on trained
/// networks take as many products in all and end a few percent lower on average.
at::Tensor random_start(LinearOperator& hessian, uint64_t seed) {
  at::Generator generator = make_generator(seed);
  at::Tensor x = at::randn({hessian.size()}, generator, at::kDouble).to(hessian.device(), hessian.dtype());
  for (int64_t step = 0; step < kPowerSteps; ++step) {
    const at::Tensor next = hessian.apply(x / norm_of(x));
    const double length = norm_of(next);
    if (!(length > 0) || !std::isfinite(length)) break;
    x = next;
  }
  return x;
}

class GeneralisedSharpness final : public Probe {
 public:
  explicit GeneralisedSharpness(GeneralisedSharpnessOptions options)
      : Probe("generalised_sharpness"), options_(std::move(options)) {}

  ProbeCost expected_cost() const override {
    const auto most = static_cast<double>(1 + options_.iterations);
    const double from_random = kPowerSteps + std::min(2.5, most);
    const double of_a_norm = std::min(5.0, most) + static_cast<double>(options_.restarts) * from_random;
    return {2, static_cast<double>(options_.norms.size()) * of_a_norm};
  }
  std::vector<Answer> needs() const override { return {Answer::gradient, Answer::product}; }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    const std::unique_ptr<CurvatureProducts> hessian = context.problem.curvature(Curvature::hessian);
    const at::Tensor gradient = context.problem.gradient();
    int64_t products = 0;
    for (const std::string& name : options_.norms) {
      const NamedNorm& norm = named_norm(name);
      const BallSearch found = search(norm, context, *hessian, gradient);
      for (const QuadraticMaximum& end : found.ends) products += end.products;
      add_quantities(norm, found, context.learning_rate, result);
      record(norm, found, result);
    }
    result.attributes.insert(result.attributes.end(), {{"learning_rate", context.learning_rate},
                                                       {"iterations", options_.iterations},
                                                       {"tolerance", options_.tolerance},
                                                       {"restarts", options_.restarts},
                                                       {"hvps", products},
                                                       {"gradients", int64_t{1}}});
    conclude(result);
  }

  BallSearch search(const NamedNorm& norm, const ProbeContext& context, LinearOperator& hessian,
                    const at::Tensor& gradient) const {
    BallSearch found;
    if (!gradient.isfinite().all().item<bool>()) return found;
    const NormBall ball(norm.norm, context.problem.parameters());
    const auto farthest = [&](const at::Tensor& x) { return ball.farthest(x); };
    const QuadraticSearch settings{options_.iterations, options_.tolerance};
    found.dual_norm = ball.dual_norm(gradient);
    found.ends.push_back(maximise_quadratic(hessian, farthest, gradient, settings));
    for (int64_t i = 0; i < options_.restarts; ++i) {
      const at::Tensor start = random_start(hessian, derive_seed(context.seed, "ball-start-" + norm.name, i));
      found.ends.push_back(maximise_quadratic(hessian, farthest, start, settings));
      found.ends.back().products += kPowerSteps;
    }
    return found;
  }

  static ProbeStatus status_of(const BallSearch& found) {
    if (found.nonfinite()) return ProbeStatus::nonfinite;
    return found.best().stationary || found.best().value <= 0 ? ProbeStatus::ok : ProbeStatus::not_converged;
  }

  static void add_quantities(const NamedNorm& norm, const BallSearch& found, double rate,
                             ProbeResult& result) {
    const ProbeStatus status = status_of(found);
    const bool known = status != ProbeStatus::nonfinite;
    Quantity sharpness =
        named({"s_" + norm.name, "sharpness in " + norm.in_words, "generalised-sharpness", "loss/weight^2"},
              UncertaintyKind::lower_bound);
    sharpness.status = status;
    sharpness.value = {known ? std::max(0.0, found.best().value) : kNaN};
    sharpness.uncertainty = {known ? found.spread() : kNaN};

    Quantity dual = named({"dual_gradient_" + norm.name, "norm of the gradient, dual to " + norm.in_words,
                           "dual-gradient-norm", "loss/weight"},
                          UncertaintyKind::none);
    dual.status = known ? ProbeStatus::ok : ProbeStatus::nonfinite;
    dual.value = {found.dual_norm};
    dual.uncertainty = {known ? 0 : kNaN};

    Quantity scaled = sharpness;
    scaled.name = "rate_s_" + norm.name;
    scaled.long_name = "learning rate times it, over the dual norm of the gradient";
    scaled.definition = "generalised-rate-sharpness";
    scaled.units = "1";
    const double factor = rate / found.dual_norm;
    scaled.value = {sharpness.value[0] * factor};
    scaled.uncertainty = {sharpness.uncertainty[0] * factor};
    if (known && !std::isfinite(factor)) {
      scaled.status = ProbeStatus::not_resolved;
      scaled.value = scaled.uncertainty = {kNaN};
    }
    for (Quantity* q : {&sharpness, &scaled, &dual}) result.quantities.push_back(std::move(*q));
  }

  static void record(const NamedNorm& norm, const BallSearch& found, ProbeResult& result) {
    std::vector<double> values, gaps;
    std::vector<int64_t> products;
    for (const QuadraticMaximum& end : found.ends) {
      values.push_back(end.value);
      gaps.push_back(end.gap);
      products.push_back(end.products);
    }
    result.attributes.insert(result.attributes.end(), {{norm.name + "_start_values", values},
                                                       {norm.name + "_start_gaps", gaps},
                                                       {norm.name + "_start_products", products}});
  }

  static void conclude(ProbeResult& result) {
    result.status = gravest_status(result.quantities);
    if (result.status == ProbeStatus::nonfinite)
      result.message = "the gradient or a Hessian-vector product was not finite";
    if (result.status == ProbeStatus::not_converged)
      result.message = "the best search was still rising: raise iterations, or tolerance";
    if (result.status == ProbeStatus::not_resolved)
      result.message = "the gradient is zero, or the checkpoint has no learning rate";
  }

  GeneralisedSharpnessOptions options_;
};

}  // namespace

void bind_options(OptionTable& table, GeneralisedSharpnessOptions& options) {
  table.add("norms", options.norms, distinct(one_of({"linf", "spectral"})),
            "balls: |d_j| <= 1 for every weight, or a spectral norm of at most 1 for every matrix");
  table.add("restarts", options.restarts, between(0, 1000),
            "searches from random points, besides that from the gradient");
  table.add("iterations", options.iterations, between(1, 10000),
            "Frank-Wolfe steps per search, a product each");
  table.add("tolerance", options.tolerance, between(1e-8, 1),
            "a search has ended where its gap is at most this share of its value");
}

std::unique_ptr<Probe> make_generalised_sharpness(const GeneralisedSharpnessOptions& options) {
  return std::make_unique<GeneralisedSharpness>(options);
}

ProbeEntry generalised_sharpness_entry() {
  return probe_entry<GeneralisedSharpnessOptions, make_generalised_sharpness>({
      .name = "generalised_sharpness",
      .label = "generalised sharpness",
      .help = "sharpness in the norms of sign and spectral descent",
      .version = 1,
      .definitions = {"generalised-sharpness", "generalised-rate-sharpness", "dual-gradient-norm"},
      .entries = {"s_linf", "rate_s_linf", "dual_gradient_linf", "s_spectral", "rate_s_spectral",
                  "dual_gradient_spectral"},
      .headlines = {{"rate_s_linf", "", "η S_∞/‖g‖₁"}, {"rate_s_spectral", "", "η S_op/‖g‖_*"}},
      .bound_error = "starts apart by",
  });
}

}  // namespace basin
