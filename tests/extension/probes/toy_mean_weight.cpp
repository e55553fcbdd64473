// defines: the probe toy_mean_weight, for tests/python/extension/test_extension.py.
#include <ATen/ATen.h>

#include "probes/common.h"
#include "probes/registry.h"

namespace basin {
namespace {

struct ToyMeanWeightOptions {
  double power = 1;
};

void bind_options(OptionTable& table, ToyMeanWeightOptions& options) {
  table.add("power", options.power, greater_than(0), "exponent");
}

/// mean over all weights w of |w|^power. Exact; no product with the Hessian, no draw.
class ToyMeanWeight : public Probe {
 public:
  explicit ToyMeanWeight(const ToyMeanWeightOptions& options) : Probe("toy_mean_weight"), options_(options) {}
  ProbeCost expected_cost() const override { return {}; }
  std::vector<Answer> needs() const override { return {}; }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    Quantity q =
        named({"mean_weight", "mean size of a weight", "toy-mean-weight", "weight"}, UncertaintyKind::none);
    const at::Tensor weights = context.problem.parameters().gather().to(at::kDouble);
    q.value = {weights.abs().pow(options_.power).mean().item<double>()};
    q.uncertainty = {0};
    if (!std::isfinite(q.value[0])) {
      q.status = result.status = ProbeStatus::nonfinite;
      q.value = q.uncertainty = {kNaN};
      result.message = "a weight is not finite";
    }
    result.quantities.push_back(std::move(q));
  }

  ToyMeanWeightOptions options_;
};

std::unique_ptr<Probe> make_toy(const ToyMeanWeightOptions& options) {
  return std::make_unique<ToyMeanWeight>(options);
}

}  // namespace

ProbeEntry toy_mean_weight_entry() {
  return probe_entry<ToyMeanWeightOptions, make_toy>({
      .name = "toy_mean_weight",
      .label = "toy",
      .help = "mean size of a weight, a toy",
      .draws = false,
      .definitions = {"toy-mean-weight"},
      .headlines = {{"mean_weight", "toy heading", "toy mean |w| (weight)"}},
  });
}

}  // namespace basin
