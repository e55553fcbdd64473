// What a probe is said to cost before it runs, against the passes through the network that it makes: counted in autograd, where no
// probe counts.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hessian/curvature_operator.h"
#include "tests/probes/probe_fixture.h"
#include "tests/support/pass_count.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::counted;
using testing::Passes;
using testing::run_probe;

// A forecast knows the options alone, from counts on trained networks, and a search ends when it has converged: on this network they
// differ by up to 2.3 (Lanczos for both ends of a spectrum, 37 products expected and 16 made). It counts in time as well, which small
// groups and single gradients take above their share of a pass: up to 1.65 (gradient_statistics). The rest: what a probe without a
// pass takes.
constexpr double kFactor = 2.4, kPasses = 0.01;

void expect_near(double expected, double made, const char* what) {
  EXPECT_LE(expected, kFactor * made + kPasses) << what << ": " << made << " made";
  EXPECT_LE(made, kFactor * expected + kPasses) << what << ": " << expected << " expected";
}

class ExpectedCost : public ::testing::TestWithParam<std::string> {
 protected:
  /// In the units of a forecast: passes over the examples, three forward passes to a gradient. What builds the graph that
  /// products are taken from counts as a gradient.
  ProbeCost cost_of(const std::function<void()>& work) {
    const Passes made = counted(work), of_gradient = counted([&] { objective.gradient(); });
    CurvatureOperator hessian(objective, Curvature::hessian);
    const at::Tensor x = at::ones({hessian.size()}, at::kFloat);
    hessian.apply(x);  // makes the graphs that it keeps
    const Passes of_product = counted([&] { hessian.apply(x); });
    ProbeCost cost;
    cost.hvps = made.twice / of_product.twice;
    const double gradients = (made.backward - cost.hvps * of_product.backward) / of_gradient.backward;
    cost.gradients = gradients + (made.forward / of_gradient.forward - gradients) / 3;
    return cost;
  }

  void expect_forecast(const std::vector<std::string>& settings) {
    const ProbeEntry& entry = find_entry(probe_registry(), GetParam(), "probe");
    const ProbeCost expected = entry.make(*testing::options_with(entry, settings))->expected_cost();
    const ProbeCost made = cost_of([&] { run_probe(GetParam(), objective, settings); });
    expect_near(expected.gradients, made.gradients, "gradients");
    expect_near(expected.hvps, made.hvps, "Hessian-vector products");
  }

  testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 1000, 1, at::kFloat);
  std::shared_ptr<Model> model = testing::tiny_mlp(1, at::kFloat, "tanh");
  at::Tensor labels = model->forward(batch.images).argmax(1);  // pac_bayes asks for accuracy to lose
  Objective objective{model, LossKind::cross_entropy, batch.images, labels, 250, /*graph_memory=*/1 << 30};
};

TEST_P(ExpectedCost, IsNearWhatIsCounted) { expect_forecast({}); }

// Other counts, draws and methods: the forecast follows the options.
TEST_P(ExpectedCost, IsNearWhatIsCountedOfACheapOne) {
  expect_forecast(find_entry(probe_registry(), GetParam(), "probe").audit.cheap);
}

INSTANTIATE_TEST_SUITE_P(All, ExpectedCost, ::testing::ValuesIn(names_of(probe_registry())),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace basin
