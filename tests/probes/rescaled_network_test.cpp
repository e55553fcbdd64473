// Dinh et al. (ICML 2017): other weights of the same ReLU network have another Hessian.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/symmetries.h"
#include "tests/probes/probe_fixture.h"
#include "tests/support/analytic_models.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::quantity;
using testing::run_probe;

struct TwoLayers {
  std::shared_ptr<Model> model =
      testing::make_test_model("mlp", {"hidden=[4, 3]", "activation=relu"}, testing::tiny_shape());
  testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 30);
  Objective objective{model, LossKind::cross_entropy, batch.images, batch.labels, 30};
};

/// Central differences of the gradient: no second derivative of autograd's.
at::Tensor hessian_by_differences(Objective& objective) {
  const ParameterVector& parameters = objective.parameters();
  const at::Tensor w = parameters.gather();
  const double h = 1e-5;
  std::vector<at::Tensor> columns;
  for (const at::Tensor& unit : at::eye(w.numel(), at::kDouble).unbind()) {
    parameters.scatter(w + h * unit);
    const at::Tensor above = objective.gradient();
    parameters.scatter(w - h * unit);
    columns.push_back((above - objective.gradient()) / (2 * h));
  }
  parameters.scatter(w);
  return at::stack(columns, 1);
}

/// w' = D w: the factor of each weight.
at::Tensor factors(const TwoLayers& network, const Symmetry& symmetry) {
  NamedTensors ones;
  std::vector<at::Tensor> flat;
  for (const ParameterInfo& parameter : network.model->parameter_table()) {
    ones.emplace_back(parameter.name, at::ones_like(parameter.tensor.detach()));
    flat.push_back(ones.back().second.flatten());
  }
  apply_symmetry(symmetry, ones);
  flat.clear();
  for (const auto& [name, tensor] : ones) flat.push_back(tensor.flatten());
  return at::cat(flat);
}

TEST(RescaledNetwork, LargestEigenvalueIsThatOfTheScaledHessian) {
  TwoLayers network;
  const at::Tensor before = hessian_by_differences(network.objective);
  const std::vector<UnitGroup> groups = network.model->unit_groups();
  ASSERT_EQ(groups.size(), 2u);
  const Symmetry symmetry =
      joined({relu_rescale(*network.model, groups[0], at::tensor({5.0, 0.3, 2.0, 1.0}, at::kDouble)),
              relu_rescale(*network.model, groups[1], at::tensor({0.5, 3.0, 0.1}, at::kDouble))});
  const double loss = network.objective.loss();
  const at::Tensor inverse = factors(network, symmetry).reciprocal();
  apply_symmetry(symmetry, named_tensors(*network.model));
  EXPECT_NEAR(network.objective.loss(), loss, 1e-14);

  // L'(w') = L(D^-1 w'), so H' = D^-1 H D^-1.
  const at::Tensor expected = inverse.unsqueeze(1) * before * inverse.unsqueeze(0);
  const at::Tensor spectrum = at::linalg_eigvalsh((expected + expected.t()) / 2);
  const ProbeResult result = run_probe("top_eigenvalues", network.objective, {"tolerance=1e-9"});
  const double largest = spectrum[spectrum.numel() - 1].item<double>();
  // Differences: h^2/6 = 2e-11 and 1e-16/h = 1e-11, times up to 1/0.1^2 of the factors.
  EXPECT_NEAR(quantity(result, "lambda").value[0], largest, 1e-6 * largest);
  const at::Tensor unscaled = at::linalg_eigvalsh((before + before.t()) / 2);
  EXPECT_GT(largest, 2 * unscaled.max().item<double>());
}

TEST(RescaledNetwork, UnitsInAnotherOrderLeaveTheSpectrum) {
  TwoLayers network;
  const at::Tensor before = at::linalg_eigvalsh(hessian_by_differences(network.objective));
  for (const UnitGroup& group : network.model->unit_groups())
    apply_symmetry(unit_permutation(group, at::arange(group.units, at::kLong).roll(1)),
                   named_tensors(*network.model));
  const double largest = before.max().item<double>();
  const ProbeResult result = run_probe("top_eigenvalues", network.objective, {"tolerance=1e-9"});
  EXPECT_NEAR(quantity(result, "lambda").value[0], largest, 1e-8 * largest);
}

}  // namespace
}  // namespace basin
