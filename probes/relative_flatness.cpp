#include "probes/relative_flatness.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/seed.h"
#include "models/layers/layer_calls.h"
#include "models/scoped_norm_mode.h"
#include "probes/estimators/network_layers.h"
#include "probes/estimators/set_estimates.h"
#include "probes/noise_quantities.h"
#include "probes/registry.h"

namespace basin {
namespace {

[[noreturn]] void refuse(const std::string& key, const std::string& value, const std::string& why) {
  throw ConfigError(fmt::format("relative_flatness.{} = \"{}\": {}", key, value, why));
}

/// The layer's weight; the last linear one where no name is given.
const ParameterInfo& weight_of(const std::vector<ParameterInfo>& parameters, const std::string& layer) {
  const ParameterInfo* found = nullptr;
  std::vector<std::string> linear;
  for (const ParameterInfo& p : parameters) {
    if (p.kind != ParameterKind::weight || p.tensor.dim() != 2) continue;
    linear.push_back(p.layer);
    if (layer.empty() || p.layer == layer) found = &p;
  }
  if (!found)
    refuse("layer", layer,
           fmt::format("not a linear layer; the network's linear layers: {}", fmt::join(linear, ", ")));
  return *found;
}

/// d(weights . value) by what enters the graph at `edge`.
at::Tensor slope_at(const torch::autograd::Edge& edge, const at::Tensor& value, const at::Tensor& weights,
                    bool create_graph) {
  return torch::autograd::Engine::get_default_engine()
      .execute({torch::autograd::impl::gradient_edge(value)}, {weights}, /*keep_graph=*/true, create_graph,
               /*accumulate_grad=*/false, {edge})
      .front();
}

/// By example, float64 on the CPU: its share of kappa and of Tr H, and the variances that drawing left.
struct Shares {
  at::Tensor kappa, trace, kappa_variance, trace_variance;
};

class RelativeFlatness final : public Probe {
 public:
  explicit RelativeFlatness(const RelativeFlatnessOptions& options)
      : Probe("relative_flatness"), options_(options), closed_(options.method == "closed_form") {}

  ProbeCost expected_cost() const override {
    if (closed_) return {1.0 / 3, 0};
    return {1, static_cast<double>(options_.samples)};
  }
  std::vector<Answer> needs() const override { return {Answer::logits, Answer::layers}; }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    Objective& objective = context.network();
    if (result.message = why_unknown(objective); !result.message.empty()) {
      result.status = ProbeStatus::unavailable;
      return;
    }
    const ScopedNormMode unfolded(objective.model(), NormMode::running);  // W as it is
    const ParameterInfo& target = weight_of(objective.parameters().parameters(), options_.layer);
    begin(target.tensor, context.seed);
    std::vector<Shares> shares;
    bool finite = true;
    for (int64_t first = 0; finite && first < objective.examples(); first += objective.micro_batch()) {
      throw_if_interrupted();
      const int64_t count = std::min(objective.micro_batch(), objective.examples() - first);
      shares.push_back(shares_of(objective, target, first, count));
      finite = at::isfinite(shares.back().kappa).all().item<bool>();
    }
    add_quantities(shares, finite, context, result);
    result.attributes.insert(result.attributes.end(),
                             {{"layer", target.layer},
                              {"hvps", closed_ ? int64_t{0} : vectors()},
                              {"samples", closed_ || exact_ ? int64_t{0} : vectors()}});
    result.status = gravest_status(result.quantities);
    if (result.status == ProbeStatus::nonfinite)
      result.message = "a logit or a second derivative is not finite";
    if (result.status == ProbeStatus::not_resolved)
      result.message = "one example says nothing about a set of examples";
  }

  /// Empty where it is known.
  std::string why_unknown(const Objective& objective) const {
    if (objective.label_kind() == LabelKind::tokens)
      return "known for a layer that takes one vector per example; here it takes one per token";
    if (closed_ && objective.loss_kind() != LossKind::cross_entropy)
      return "the closed form is that of loss = \"cross_entropy\"; method = \"hessian\" knows others";
    return "";
  }

  void begin(const at::Tensor& weight, uint64_t seed) {
    const at::Tensor w = weight.detach().to(at::kDouble);
    gram_ = w.matmul(w.t());
    exact_ = gram_.size(0) <= options_.samples;
    generators_.clear();
    if (closed_ || exact_) return;
    for (int64_t k = 0; k < options_.samples; ++k)
      generators_.push_back(make_generator(derive_seed(seed, "relative-flatness", k)));
  }

  int64_t vectors() const { return exact_ ? gram_.size(0) : options_.samples; }

  Shares shares_of(Objective& objective, const ParameterInfo& target, int64_t first, int64_t count) {
    const at::AutoGradMode record(true);
    std::vector<LayerCall> calls;
    at::Tensor logits;
    {
      const LayerCalls noted;
      logits = objective.logits(first, count);
      calls = noted.list();
    }
    const LayerCall& call = only_call(calls, target);
    const at::Tensor squares = call.x.detach().to(at::kDouble).flatten(1).square().sum(1);
    if (closed_) return closed_form(call, logits.detach(), squares, target.layer);
    return by_products(call, objective.losses(logits, first, count).sum(), squares);
  }

  static const LayerCall& only_call(const std::vector<LayerCall>& calls, const ParameterInfo& target) {
    const auto same = [&](const LayerCall& call) { return call.weight.is_same(target.tensor); };
    const auto call = std::find_if(calls.begin(), calls.end(), same);
    if (call == calls.end() || std::count_if(calls.begin(), calls.end(), same) > 1 || call->x.dim() != 2)
      refuse("layer", target.layer, "the layer isn't one linear map of one vector per example");
    return *call;
  }

  /// With G_ab - G_aa/2 - G_bb/2 = -|w_a - w_b|^2/2 the trace is a sum of what is not below 0, which keeps
  /// its digits where p is all but an indicator: tr(G M) = c^2/2 sum_ab p_a p_b |w_a - w_b|^2.
  Shares closed_form(const LayerCall& call, const at::Tensor& logits, const at::Tensor& squares,
                     const std::string& layer) const {
    const at::NoGradGuard no_grad;
    const double factor = logit_factor(logits, at::linear(call.x, call.weight, call.bias));
    const bool finite = at::isfinite(logits).all().item<bool>();
    if (finite && std::isnan(factor))
      refuse("layer", layer, "the logits aren't the layer's outputs; use method = \"hessian\"");
    const at::Tensor p = at::softmax(logits.to(at::kDouble), 1), norms = gram_.diag();
    const at::Tensor apart = (norms.unsqueeze(0) + norms.unsqueeze(1) - 2 * gram_).clamp_min(0);
    const at::Tensor unlike = 1 - at::eye(gram_.size(0), gram_.options());
    const auto share = [&](const at::Tensor& pairs) {
      return (squares * (p.matmul(pairs) * p).sum(1) * (factor * factor)).cpu();
    };
    return {share(apart * 0.5), share(unlike), {}, {}};
  }

  Shares by_products(const LayerCall& call, const at::Tensor& loss, const at::Tensor& squares) {
    const at::Tensor g = slope_at(call.output_edge, loss, at::ones_like(loss), /*create_graph=*/true);
    std::vector<at::Tensor> kappa, trace;  // by vector, [count]
    for (int64_t k = 0; k < vectors(); ++k) {
      const at::Tensor z = exact_ ? unit_vectors(k, g) : signs(k, g);
      at::Tensor mz;
      if (g.requires_grad()) mz = slope_at(call.output_edge, g, z.to(g.scalar_type()), false);
      const at::NoGradGuard no_grad;
      const at::Tensor m = mz.defined() ? mz.detach().to(at::kDouble) : at::zeros_like(z);
      kappa.push_back((squares * (z.matmul(gram_) * m).sum(1)).cpu());
      trace.push_back((squares * (z * m).sum(1)).cpu());
    }
    const at::NoGradGuard no_grad;
    const at::Tensor k = at::stack(kappa), t = at::stack(trace);
    if (exact_) return {k.sum(0), t.sum(0), {}, {}};
    const auto n = static_cast<double>(vectors());
    return {k.mean(0), t.mean(0), k.var(0, /*unbiased=*/true) / n, t.var(0, /*unbiased=*/true) / n};
  }

  static at::Tensor unit_vectors(int64_t k, const at::Tensor& like) {
    at::Tensor z = at::zeros(like.sizes(), like.options().dtype(at::kDouble).requires_grad(false));
    z.select(1, k).fill_(1);
    return z;
  }

  /// Drawn example after example, from one generator per vector: the same however they are cut into micro-batches.
  at::Tensor signs(int64_t k, const at::Tensor& like) {
    const at::Tensor u = at::empty(like.sizes(), at::kFloat).uniform_(0, 1, generators_[k]);
    return u.ge(0.5).to(at::kDouble).mul_(2).sub_(1).to(like.device());
  }

  void add_quantities(const std::vector<Shares>& shares, bool finite, const ProbeContext& context,
                      ProbeResult& result) const {
    const std::string units = context.problem.loss_units(), end = closed_ ? "" : "-hessian";
    const auto joined = [&](at::Tensor Shares::*field) {
      std::vector<at::Tensor> parts;
      for (const Shares& part : shares) parts.push_back(part.*field);
      return parts.front().defined() ? at::cat(parts) : at::Tensor();
    };
    const auto add = [&](const QuantityNaming& naming, at::Tensor Shares::*field,
                         at::Tensor Shares::*variance, double factor) {
      Estimate e = no_estimate();
      if (finite) e = mean_of_set(joined(field), context.train_examples, joined(variance));
      const Estimate scaled{e.value * factor, e.error * factor, e.low * factor, e.high * factor};
      result.quantities.push_back(measured(naming, scaled, status_of(e, !std::isnan(e.error), !finite)));
    };
    add({"relative_flatness", "relative flatness", "relative-flatness" + end, units}, &Shares::kappa,
        &Shares::kappa_variance, 1);
    add({"relative_flatness_simple", "|W|_F^2 Tr H", "relative-flatness-simple" + end, units}, &Shares::trace,
        &Shares::trace_variance, gram_.trace().item<double>());
  }

  RelativeFlatnessOptions options_;
  bool closed_, exact_ = false;
  at::Tensor gram_;  // G = W W', float64
  std::vector<at::Generator> generators_;
};

}  // namespace

void bind_options(OptionTable& table, RelativeFlatnessOptions& options) {
  table.add("method", options.method, one_of({"closed_form", "hessian"}),
            "closed_form: the last layer under cross entropy; hessian: any linear layer");
  table.add("layer", options.layer, anything(), "name of a linear layer; \"\": the last one");
  table.add(
      "samples", options.samples, between(2, 100000),
      "hessian: random sign vectors per example; a layer with no more outputs than this is computed exactly");
}

std::unique_ptr<Probe> make_relative_flatness(const RelativeFlatnessOptions& options) {
  return std::make_unique<RelativeFlatness>(options);
}

ProbeEntry relative_flatness_entry() {
  return probe_entry<RelativeFlatnessOptions, make_relative_flatness>({
      .name = "relative_flatness",
      .label = "relative flatness",
      .help = "relative flatness of a linear layer, by default the last",
      .version = 1,
      .draws = false,
      .definitions = {"relative-flatness", "relative-flatness-simple", "relative-flatness-hessian",
                      "relative-flatness-simple-hessian"},
      .entries = {"relative_flatness", "relative_flatness_simple"},
      .audit = {.variants = {{"", {"method=hessian"}}}},
  });
}

}  // namespace basin
