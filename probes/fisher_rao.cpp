#include "probes/fisher_rao.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/interrupt.h"
#include "core/math/nan.h"
#include "hessian/jacobian.h"
#include "probes/estimators/set_estimates.h"
#include "probes/noise_quantities.h"
#include "probes/registry.h"

namespace basin {
namespace {

constexpr double kMostDeviation = 1e-4;  // float32 sums of a deep network agree to some 1e-6

/// Of each example, float64.
struct Slopes {
  at::Tensor logits, along_w;    // f and J w, [n, ..., classes]
  at::Tensor empirical, closed;  // [n]: <w, g_i>^2 and <dl_i/df, f_i>^2
  at::Tensor model;              // [n]: <w, g_i>^2 over the network's labels
};

/// dl_i/df of each example.
at::Tensor slopes_by_logits(Objective& objective, const at::Tensor& logits, int64_t first) {
  const at::AutoGradMode record(true);
  const at::Tensor leaf = logits.detach().requires_grad_(true);
  const at::Tensor loss = objective.losses(leaf, first, leaf.size(0)).sum();
  return derivative({loss}, {leaf}, {}, /*create_graph=*/false).front();
}

Slopes slopes_of(Objective& objective, int64_t first, int64_t count) {
  const ParameterVector& vector = objective.parameters();
  at::Tensor logits, along_w;
  {
    const at::AutoGradMode record(true);
    logits = objective.logits(first, count);
    along_w = Jacobian(vector.tensors(), logits).times(vector.unflatten(vector.gather()));
  }
  const at::NoGradGuard no_grad;
  Slopes s;
  s.logits = logits.detach().to(at::kCPU, at::kDouble);
  s.along_w = along_w.defined() ? along_w.detach().to(at::kCPU, at::kDouble) : at::zeros_like(s.logits);
  const at::Tensor by_logits = slopes_by_logits(objective, logits.detach().to(at::kDouble), first).cpu();
  s.empirical = (by_logits * s.along_w).flatten(1).sum(1).square();
  s.closed = (by_logits * s.logits).flatten(1).sum(1).square();
  if (objective.loss_kind() == LossKind::mse) {
    s.model = s.along_w.square().sum(1);
    return s;
  }
  const at::Tensor p = at::softmax(s.logits, -1);
  const at::Tensor variances = (p * (s.along_w - (p * s.along_w).sum(-1, /*keepdim=*/true)).square()).sum(-1);
  // An example's loss is the mean of its tokens', each with a label of its own.
  s.model = variances.dim() > 1 ? variances.mean(1) / static_cast<double>(variances.size(1)) : variances;
  return s;
}

Slopes all_slopes(Objective& objective) {
  std::vector<Slopes> parts;
  for (int64_t first = 0; first < objective.examples(); first += objective.micro_batch()) {
    throw_if_interrupted();
    parts.push_back(
        slopes_of(objective, first, std::min(objective.micro_batch(), objective.examples() - first)));
  }
  const auto joined = [&](at::Tensor Slopes::*field) {
    std::vector<at::Tensor> pieces;
    for (const Slopes& part : parts) pieces.push_back(part.*field);
    return at::cat(pieces);
  };
  return {joined(&Slopes::logits), joined(&Slopes::along_w), joined(&Slopes::empirical),
          joined(&Slopes::closed), joined(&Slopes::model)};
}

/// How far the logits are from being homogeneous in the weights: J w = degree x f.
struct Homogeneity {
  double degree = kNaN, deviation = kNaN;
  bool holds() const { return degree >= 1 && deviation <= kMostDeviation; }
};

Homogeneity homogeneity_of(const Slopes& slopes) {
  const double squares = slopes.logits.square().sum().item<double>();
  if (!(squares > 0)) return {};
  const double degree = std::round((slopes.logits * slopes.along_w).sum().item<double>() / squares);
  const at::Tensor off = slopes.along_w - slopes.logits * degree;
  return {degree, off.norm().item<double>() / (std::max(std::abs(degree), 1.0) * std::sqrt(squares))};
}

class FisherRao final : public Probe {
 public:
  explicit FisherRao(const FisherRaoOptions& options) : Probe("fisher_rao"), options_(options) {}

  ProbeCost expected_cost() const override { return {1.0 / 3, 1}; }
  std::vector<Answer> needs() const override { return {Answer::logits}; }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    const Slopes slopes = all_slopes(context.network());
    const bool finite =
        at::isfinite(slopes.logits).all().item<bool>() && at::isfinite(slopes.along_w).all().item<bool>();
    const Homogeneity homogeneity = finite ? homogeneity_of(slopes) : Homogeneity();
    const std::string units = fmt::format("{}^2", context.problem.loss_units());
    const auto add = [&](const QuantityNaming& naming, const at::Tensor& values, bool exists) {
      const Estimate e = finite && exists ? mean_of_set(values, context.train_examples) : no_estimate();
      result.quantities.push_back(measured(naming, e, status_of(e, !std::isnan(e.error), !finite)));
    };
    for (const std::string& form : options_.forms) {
      if (form == "empirical")
        add({"fisher_rao_empirical", "w'Fw, labels of the examples", "fisher-rao-empirical", units},
            slopes.empirical, true);
      if (form == "model")
        add({"fisher_rao_model", "w'Fw, labels of the network", "fisher-rao-model", units}, slopes.model,
            true);
      if (form == "closed_form")
        add({"fisher_rao_closed_form", "(L+1)^2 E <dl/df, f>^2", "fisher-rao-closed-form", units},
            slopes.closed * (homogeneity.degree * homogeneity.degree), homogeneity.holds());
    }
    result.attributes.insert(
        result.attributes.end(),
        {{"hvps", int64_t{1}}, {"degree", homogeneity.degree}, {"degree_deviation", homogeneity.deviation}});
    conclude(finite, homogeneity, result);
  }

  void conclude(bool finite, const Homogeneity& homogeneity, ProbeResult& result) const {
    result.status = gravest_status(result.quantities);
    if (!finite) result.message = "a logit or its slope is not finite";
    if (result.status != ProbeStatus::not_resolved) return;
    const bool asked = std::count(options_.forms.begin(), options_.forms.end(), "closed_form") > 0;
    result.message = asked && !homogeneity.holds()
                         ? fmt::format(
                               "no closed form: J w is {:.2g} off {} f, as with biases, norms, other "
                               "activations than ReLU",
                               homogeneity.deviation, homogeneity.degree)
                         : "one example says nothing about a set of examples";
  }

  FisherRaoOptions options_;
};

}  // namespace

void bind_options(OptionTable& table, FisherRaoOptions& options) {
  table.add("forms", options.forms, distinct(one_of({"empirical", "model", "closed_form"})),
            "labels from the data (empirical) or drawn from the network (model); closed_form: for ReLU "
            "networks without biases");
}

std::unique_ptr<Probe> make_fisher_rao(const FisherRaoOptions& options) {
  return std::make_unique<FisherRao>(options);
}

ProbeEntry fisher_rao_entry() {
  return probe_entry<FisherRaoOptions, make_fisher_rao>({
      .name = "fisher_rao",
      .label = "Fisher-Rao norm",
      .help = "Fisher-Rao norm w'Fw of the weights",
      .version = 1,
      .draws = false,
      .definitions = {"fisher-rao-empirical", "fisher-rao-model", "fisher-rao-closed-form"},
      .entries = {"fisher_rao_empirical", "fisher_rao_model", "fisher_rao_closed_form"},
      .audit = {.cheap = {"forms=[\"empirical\", \"model\", \"closed_form\"]"}},
  });
}

}  // namespace basin
