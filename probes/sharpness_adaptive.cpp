#include "probes/sharpness_adaptive.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <bit>

#include "core/interrupt.h"
#include "core/math/statistics.h"
#include "core/seed.h"
#include "landscape/ball_maximum.h"
#include "landscape/displaced_weights.h"
#include "landscape/normalised_logits.h"
#include "probes/common.h"
#include "probes/registry.h"

namespace basin {
namespace {

/// One of `measures`.
struct Kind {
  std::string name;  // "worst_l2"
  bool worst;
  BallNorm norm;
  const std::vector<double>& rhos;
};

/// What the searches of one group found.
struct GroupMaximum {
  double rise = kNaN, norm = kNaN;  // of the best point: the loss gained, |delta/c|_p
  bool nonfinite = false;
  ProbeStatus status() const {
    return nonfinite          ? ProbeStatus::nonfinite
           : std::isnan(rise) ? ProbeStatus::not_resolved
                              : ProbeStatus::ok;
  }
};

/// A point of the ball from the uniform distribution.
at::Tensor random_point(BallNorm norm, double radius, int64_t n, uint64_t seed) {
  at::Generator generator = make_generator(seed);
  if (norm == BallNorm::linf) return at::rand({n}, generator, at::kDouble).mul_(2).sub_(1).mul_(radius);
  const at::Tensor direction = at::randn({n}, generator, at::kDouble);
  const double share = at::rand({1}, generator, at::kDouble).item<double>();
  const double length = radius * std::pow(share, 1 / static_cast<double>(n));
  return direction.mul_(length / direction.norm().item<double>());
}

/// Losses at w + c u.
class Around {
 public:
  Around(const DisplacedWeights& weights, at::Tensor scale) : weights_(weights), scale_(std::move(scale)) {}

  double loss(Problem& problem, const at::Tensor& u) const {
    throw_if_interrupted();
    weights_.move(scale_ * u);
    return problem.loss();
  }
  BallFunction with_gradient(Problem& problem) const {
    return [this, &problem](const at::Tensor& u, at::Tensor& gradient) {
      throw_if_interrupted();
      weights_.move(scale_ * u);
      double loss = 0;
      gradient = problem.gradient(&loss).to(at::kDouble) * scale_;
      return loss;
    };
  }
  /// u on the host -> u on the device, 0 where no u moves the weight.
  at::Tensor usable(const at::Tensor& u) const { return u.to(scale_.device()) * (scale_ > 0); }
  at::Tensor centre() const { return at::zeros_like(scale_); }
  int64_t size() const { return scale_.numel(); }
  bool has_zeros() const { return scale_.count_nonzero().item<int64_t>() < size(); }

 private:
  const DisplacedWeights& weights_;
  at::Tensor scale_;
};

class SharpnessAdaptive final : public Probe {
 public:
  explicit SharpnessAdaptive(const SharpnessAdaptiveOptions& options)
      : Probe("sharpness_adaptive"), options_(options) {}

  ProbeCost expected_cost() const override {
    double gradients = 0;
    for (const Kind& kind : kinds()) {
      // A forward pass is a third of a gradient.
      const int64_t each = options_.restarts * (options_.iterations + 1);
      gradients += static_cast<double>(kind.rhos.size()) *
                   (kind.worst ? static_cast<double>(each) : static_cast<double>(options_.draws + 1) / 3);
    }
    return {gradients * static_cast<double>(options_.logits.size()), 0};
  }
  /// What is measured on normalised logits needs logits too.
  std::vector<Answer> needs() const override {
    std::vector<Answer> needed;
    for (const Kind& kind : kinds()) {
      const Answer answer = kind.worst ? Answer::batch_gradient : Answer::loss;
      if (std::find(needed.begin(), needed.end(), answer) == needed.end()) needed.push_back(answer);
    }
    return needed;
  }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    Problem& problem = context.problem;
    const DisplacedWeights weights(problem.parameters());
    const Around around(weights, scale_of(weights.origin()));
    gradients_ = forwards_ = 0;
    groups_ = example_groups(problem.examples(), options_.group_size, context.seed);
    for (const std::string& logits : options_.logits) {
      std::optional<Objective> mapped;
      const bool missing = logits == "normalised" && !problem.answers(Answer::logits);
      if (logits == "normalised" && !missing)
        mapped.emplace(context.network().with_logits(normalised_logits));
      Problem& seen = mapped ? *mapped : problem;
      for (const Kind& kind : kinds()) {
        for (const double rho : kind.rhos) {
          if (missing) {
            result.quantities.push_back(unavailable(kind, rho, logits, problem));
          } else if (kind.worst) {
            add_worst(kind, rho, logits, around, seen, context.seed, result);
          } else {
            add_average(kind, rho, logits, around, seen, context.seed, result);
          }
        }
      }
    }
    result.attributes.insert(result.attributes.end(), {{"group_size", groups_.size},
                                                       {"groups", static_cast<int64_t>(groups_.index.size())},
                                                       {"gradients", gradients_},
                                                       {"forwards", forwards_}});
    result.status = gravest_status(result.quantities);
    if (result.status == ProbeStatus::unavailable)
      result.message = fmt::format("normalised logits: {}", Unanswered({Answer::logits}).what());
    if (result.status == ProbeStatus::nonfinite)
      result.message = "the loss is not finite at the checkpoint or inside a ball";
    if (result.status == ProbeStatus::not_resolved)
      result.message = groups_.index.size() < 2
                           ? "only one group of examples"
                           : "a group of examples has no gradient to start from: raise restarts";
  }

  std::vector<Kind> kinds() const {
    const std::vector<Kind> all = {{"worst_l2", true, BallNorm::l2, options_.worst_l2_rhos},
                                   {"worst_linf", true, BallNorm::linf, options_.worst_linf_rhos},
                                   {"average_l2", false, BallNorm::l2, options_.average_l2_rhos},
                                   {"average_linf", false, BallNorm::linf, options_.average_linf_rhos}};
    std::vector<Kind> chosen;
    for (const std::string& name : options_.measures) chosen.push_back(find_entry(all, name, "measure"));
    return chosen;
  }

  at::Tensor scale_of(const at::Tensor& w) const {
    return options_.scale == "adaptive" ? w.abs().add_(options_.eta) : at::ones_like(w);
  }

  Quantity named_after(const Kind& kind, double rho, const std::string& logits,
                       const Problem& problem) const {
    const bool normalised = logits == "normalised";
    const std::string size = kind.worst ? fmt::format("_m{}", groups_.size) : "";
    return named({fmt::format("{}{}{}{}_{}", kind.name, options_.scale == "standard" ? "_standard" : "",
                              normalised ? "_normalised" : "", size, short_scientific(rho)),
                  fmt::format("{} sharpness, {} case, {}, rho = {}{}", options_.scale,
                              kind.worst ? "worst" : "average", kind.norm == BallNorm::l2 ? "l2" : "linf",
                              short_scientific(rho), normalised ? ", normalised logits" : ""),
                  definition_of(kind), problem.loss_units()},
                 kind.worst ? UncertaintyKind::lower_bound : UncertaintyKind::standard_error);
  }

  std::string definition_of(const Kind& kind) const {
    if (!kind.worst) return "adaptive-average";
    return options_.zero_scale == "hold" ? "adaptive-worst" : "adaptive-worst-unprojected";
  }

  Quantity unavailable(const Kind& kind, double rho, const std::string& logits,
                       const Problem& problem) const {
    Quantity q = named_after(kind, rho, logits, problem);
    q.status = ProbeStatus::unavailable;
    q.value = q.uncertainty = {kNaN};
    return q;
  }

  void add_worst(const Kind& kind, double rho, const std::string& logits, const Around& around,
                 const Problem& problem, uint64_t seed, ProbeResult& result) {
    // |delta/c| is then 0/0 and never above rho.
    const bool loose = options_.zero_scale == "unproject" && kind.norm == BallNorm::l2 && around.has_zeros();
    const BallSearch search{kind.norm, rho, options_.iterations, /*project=*/!loose};
    std::vector<double> rises, norms;
    std::vector<ProbeStatus> statuses;
    for (size_t i = 0; i < groups_.index.size(); ++i) {
      const std::unique_ptr<Problem> group = problem.part(groups_.index[i]);
      // By what is searched, not by its place in a list.
      const uint64_t of_rho = derive_seed(seed, "adaptive-" + kind.name, std::bit_cast<uint64_t>(rho));
      const GroupMaximum found = search_group(*group, around, search, derive_seed(of_rho, "group", i));
      rises.push_back(found.rise);
      norms.push_back(found.norm);
      statuses.push_back(found.status());
      gradients_ += static_cast<double>(group->gradients_done() * groups_.size) /
                    static_cast<double>(problem.examples());
    }
    Quantity q = named_after(kind, rho, logits, problem);
    q.status = gravest_status(statuses);
    if (rises.size() < 2 && q.status == ProbeStatus::ok) q.status = ProbeStatus::not_resolved;
    fill(q, mean_of(rises));
    result.attributes.emplace_back(q.name + "_group_values", rises);
    result.attributes.emplace_back(q.name + "_group_norms", norms);
    result.quantities.push_back(std::move(q));
  }

  GroupMaximum search_group(Problem& group, const Around& around, const BallSearch& search,
                            uint64_t seed) const {
    const BallFunction f = around.with_gradient(group);
    GroupMaximum best;
    double base = kNaN;
    for (int64_t restart = 0; restart < options_.restarts && !best.nonfinite; ++restart) {
      const at::Tensor start = restart == 0
                                   ? around.centre()
                                   : around.usable(random_point(search.norm, search.radius, around.size(),
                                                                derive_seed(seed, "restart", restart)));
      const BallMaximum found = maximise_in_ball(f, start, search);
      if (restart == 0) base = found.start_value;
      best.nonfinite |= found.nonfinite;
      if (found.nonfinite || found.zero_gradient || found.value - base <= best.rise) continue;
      const bool above = found.value > base;  // delta = 0 is in the ball
      best.rise = above ? found.value - base : 0;
      best.norm = above ? ball_norm(search.norm, found.point) : 0;
    }
    return best;
  }

  void add_average(const Kind& kind, double rho, const std::string& logits, const Around& around,
                   Problem& problem, uint64_t seed, ProbeResult& result) {
    Quantity q = named_after(kind, rho, logits, problem);
    const double base = around.loss(problem, around.centre());
    std::vector<double> rises;
    for (int64_t draw = 0; draw < options_.draws; ++draw) {
      // The same draws for each rho and both kinds of logits, whose differences are then seen better.
      at::Generator generator = make_generator(derive_seed(seed, "adaptive-average", draw));
      const at::Tensor u = kind.norm == BallNorm::l2
                               ? at::randn({around.size()}, generator, at::kDouble)
                               : at::rand({around.size()}, generator, at::kDouble).mul_(2).sub_(1);
      rises.push_back(around.loss(problem, around.usable(u) * rho) - base);
    }
    forwards_ += static_cast<double>(options_.draws + 1);
    const SampleMean mean = mean_of(rises);
    if (!std::isfinite(mean.value)) q.status = ProbeStatus::nonfinite;
    fill(q, mean);
    result.quantities.push_back(std::move(q));
  }

  static void fill(Quantity& q, const SampleMean& mean) {
    q.value = {q.status == ProbeStatus::ok ? mean.value : kNaN};
    q.uncertainty = {q.status == ProbeStatus::ok ? mean.standard_error : kNaN};
  }

  SharpnessAdaptiveOptions options_;
  ExampleGroups groups_;
  double gradients_ = 0, forwards_ = 0;  // in passes over the examples
};

const std::vector<Preset<SharpnessAdaptiveOptions>>& adaptive_variants() {
  static const std::vector<Preset<SharpnessAdaptiveOptions>> presets = [] {
    SharpnessAdaptiveOptions svg;
    svg.eta = 0;
    svg.zero_scale = "unproject";
    return std::vector{preset("none", SharpnessAdaptiveOptions()),
                       preset("sharpness_vs_generalization", svg)};
  }();
  return presets;
}

void bind_fields(OptionTable& table, SharpnessAdaptiveOptions& options) {
  table.add("measures", options.measures,
            distinct(one_of({"worst_l2", "worst_linf", "average_l2", "average_linf"})),
            "measures: worst or average case, in the l2 or the l-infinity norm");
  table.add("logits", options.logits, distinct(one_of({"plain", "normalised"})),
            "logits as they are (plain), or centred and scaled to length 1 for each example (normalised)");
  table.add("worst_l2_rhos", options.worst_l2_rhos, distinct(greater_than(0)),
            "radii; 0.25 to 2 in the paper");
  table.add("worst_linf_rhos", options.worst_linf_rhos, distinct(greater_than(0)), "radii");
  table.add("average_l2_rhos", options.average_l2_rhos, distinct(greater_than(0)),
            "radii; 0.05 to 0.4 in the paper");
  table.add("average_linf_rhos", options.average_linf_rhos, distinct(greater_than(0)),
            "radii; 0.1 to 0.8 in the paper");
  table.add("scale", options.scale, one_of({"adaptive", "standard"}),
            "scale of a weight: c = |w| + eta (adaptive), or 1 (standard)");
  table.add("eta", options.eta, at_least(0),
            "eta of c = |w| + eta; if it is 0, weights of exactly 0 don't move");
  table.add("zero_scale", options.zero_scale, one_of({"hold", "unproject"}),
            "unproject: where a c is exactly 0, the l2 search isn't projected back onto its ball");
  table.add("group_size", options.group_size, at_least(1),
            "m: examples per group of the worst case; at most half of those measured");
  table.add("iterations", options.iterations, between(1, 10000), "APGD iterations per start");
  table.add("restarts", options.restarts, between(1, 1000), "starts per group: delta = 0, then random ones");
  table.add("draws", options.draws, between(2, 100000), "draws of the average case");
}

}  // namespace

SharpnessAdaptiveOptions::SharpnessAdaptiveOptions() { preset = values_of = "none"; }

void bind_options(OptionTable& table, SharpnessAdaptiveOptions& options) {
  bind_presets(table, options, adaptive_variants(), bind_fields,
               "reproduce a published tool: its values for all options below that aren't set; docs/probes.md",
               "compat");
}

std::unique_ptr<Probe> make_sharpness_adaptive(const SharpnessAdaptiveOptions& options) {
  return std::make_unique<SharpnessAdaptive>(options);
}

ProbeEntry sharpness_adaptive_entry() {
  return probe_entry<SharpnessAdaptiveOptions, make_sharpness_adaptive>({
      .name = "sharpness_adaptive",
      .label = "adaptive sharpness",
      .help = "worst and average rise of the loss in balls scaled with the weights",
      .version = 1,
      .definitions = {"adaptive-worst", "adaptive-worst-unprojected", "adaptive-average"},
      .entries = {"worst_l2_*", "worst_linf_*", "average_l2_*", "average_linf_*"},
      .bound_error = "standard error over groups",
      .audit = {.cheap = {"iterations=10"},
                .variants = {{"eta=0", {"eta=0"}},
                             {"", {"compat=sharpness_vs_generalization", "measures=[\"worst_l2\"]"}}}},
  });
}

}  // namespace basin
