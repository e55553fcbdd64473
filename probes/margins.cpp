#include "probes/margins.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/interrupt.h"
#include "core/math/nan.h"
#include "probes/estimators/layer_norms.h"
#include "probes/estimators/percentile.h"
#include "probes/estimators/set_estimates.h"
#include "probes/noise_quantities.h"
#include "probes/registry.h"

namespace basin {
namespace {

constexpr int64_t kGamma = 10;  // the percentile that is normalised

/// The margin of each example, the mean of its tokens' where each has a label; float64 on the CPU.
at::Tensor margins_of(Objective& objective) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> margins;
  for (int64_t first = 0; first < objective.examples(); first += objective.micro_batch()) {
    throw_if_interrupted();
    const int64_t count = std::min(objective.micro_batch(), objective.examples() - first);
    const at::Tensor logits = objective.logits(first, count).to(at::kDouble);
    const at::Tensor label = objective.labels(first, count).unsqueeze(-1);
    const at::Tensor own = logits.gather(-1, label).squeeze(-1);
    const at::Tensor found = own - logits.scatter(-1, label, -kInfinity).amax(-1);
    margins.push_back((found.dim() > 1 ? found.mean(1) : found).cpu());
  }
  return at::cat(margins);
}

bool open(const Estimate& e) { return e.low == -kInfinity || e.high == kInfinity; }

class Margins final : public Probe {
 public:
  explicit Margins(const MarginsOptions& options) : Probe("margins"), options_(options) {}

  ProbeCost expected_cost() const override { return {1.0 / 3, 0}; }  // a forward pass
  std::vector<Answer> needs() const override { return {Answer::logits}; }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    if (context.network().label_kind() == LabelKind::numbers) {
      result.status = ProbeStatus::unavailable;
      result.message = "no margins: the labels are numbers";
      return;
    }
    const at::Tensor margins = margins_of(context.network());
    const int64_t n = margins.numel(), set = context.train_examples;
    const bool finite = at::isfinite(margins).all().item<bool>();
    std::vector<double> sorted = to_doubles(std::get<0>(margins.sort()));
    const auto percentile = [&](int64_t percent) {
      return finite ? percentile_of(sorted, static_cast<double>(percent), set) : no_estimate();
    };
    const auto below = [&](double x) { return std::lower_bound(sorted.begin(), sorted.end(), x); };
    const int64_t wrong = finite ? below(0) - sorted.begin() : 0;
    add({"margin_mean", "mean margin", "margin-mean", "logit"},
        finite ? mean_of_set(margins, set) : no_estimate(), finite, result);
    for (const int64_t percent : options_.percentiles) {
      add({fmt::format("margin_p{}", percent), fmt::format("{} % percentile of the margins", percent),
           "margin-percentile", "logit"},
          percentile(percent), finite, result);
    }
    add({"negative_share", "share of margins below 0", "margin-negative-share", "1"},
        finite ? share_of_set(wrong, n, set) : no_estimate(), finite, result);
    add_normalised(context.network(), percentile(kGamma), finite, result);
    result.attributes.emplace_back("forwards", int64_t{1});
    conclude(finite, result);
  }

  static void add(const QuantityNaming& naming, const Estimate& e, bool finite, ProbeResult& result) {
    result.quantities.push_back(measured(naming, e, status_of(e, !std::isnan(e.error) && !open(e), !finite)));
  }

  void add_normalised(Objective& objective, const Estimate& gamma, bool finite, ProbeResult& result) const {
    const NetworkLayers layers = network_layers(objective);
    for (const std::string& over : options_.over) {
      const NormOrReason norm = !finite              ? NormOrReason{kNaN, ""}
                                : over == "spectral" ? spectral_product(layers)
                                                     : nonzero(path_norm(objective, layers));
      const Estimate e{gamma.value / norm.value, gamma.error / norm.value, gamma.low / norm.value,
                       gamma.high / norm.value};
      add({"margin_over_" + over,
           fmt::format("{} % percentile of the margins over the {} norm", kGamma, over),
           "margin-over-" + over, "1"},
          e, finite, result);
      if (!norm.reason.empty()) add_message(result.quantities.back().name + ": " + norm.reason, result);
      result.attributes.emplace_back(over + "_norm", norm.value);
    }
  }

  static NormOrReason nonzero(NormOrReason norm) {
    if (norm.reason.empty() && norm.value == 0) return {kNaN, "no path has weights other than 0"};
    return norm;
  }

  /// prod |W_i|_2.
  static NormOrReason spectral_product(const NetworkLayers& layers) {
    if (!layers.reason.empty()) return {kNaN, layers.reason};
    std::vector<SpectralNorm> norms;
    for (const NetworkLayer& layer : layers.list) norms.push_back(spectral_norm(layer.weight));
    const double product = product_of(norms).value;
    if (product == 0) return {kNaN, "a layer's weights are all 0"};
    return {product, ""};
  }

  static void add_message(const std::string& text, ProbeResult& result) {
    result.message += (result.message.empty() ? "" : "; ") + text;
  }

  static void conclude(bool finite, ProbeResult& result) {
    result.status = gravest_status(result.quantities);
    if (!finite) result.message = "a logit is not finite";
    if (result.status == ProbeStatus::not_resolved && result.message.empty())
      result.message = "too few examples for the interval of a percentile";
  }

  MarginsOptions options_;
};

}  // namespace

void bind_options(OptionTable& table, MarginsOptions& options) {
  table.add("percentiles", options.percentiles, distinct(between(1, 99)), "percentiles of the margins");
  table.add("over", options.over, distinct(one_of({"spectral", "path"})),
            "norms that the 10th percentile is divided by");
}

std::unique_ptr<Probe> make_margins(const MarginsOptions& options) {
  return std::make_unique<Margins>(options);
}

ProbeEntry margins_entry() {
  return probe_entry<MarginsOptions, make_margins>({
      .name = "margins",
      .label = "margins",
      .help = "margins of the logits, plain and normalised",
      .version = 1,
      .draws = false,
      .definitions = {"margin-mean", "margin-percentile", "margin-negative-share", "margin-over-spectral",
                      "margin-over-path"},
      .entries = {"margin_mean", "margin_p#", "negative_share", "margin_over_*"},
  });
}

}  // namespace basin
