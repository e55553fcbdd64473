// Architectures against an independent program: tests/oracles/model_golden.py builds the same networks in
// PyTorch.
#include <gtest/gtest.h>

#include "models/loss.h"
#include "tests/models/golden_logits.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

// The generator's `fill`: by name and shape alone, in row-major order whatever the memory format.
at::Tensor fill(const std::string& name, const at::Tensor& like) {
  const int64_t count = like.numel();
  const at::Tensor j = at::arange(count, at::kDouble);
  at::Tensor values;
  if (name.ends_with("running_var")) {
    values = 1 + 0.5 * j.sin();
  } else if (like.dim() == 1) {
    const bool norm_weight = name.find("norm") != std::string::npos && name.ends_with("weight");
    values = 0.1 * (2.3 * j).cos() + (norm_weight ? 1 : 0);
  } else {
    const double fan_in = static_cast<double>(count) / static_cast<double>(like.size(0));
    values = 1.5 / std::sqrt(fan_in) * (0.7 * j + 0.1 * static_cast<double>(count)).sin();
  }
  return values.reshape(like.sizes());
}

struct LogitsCase {
  InputShape shape;
  at::Tensor inputs, labels;
};

/// Pictures, or tokens where the model takes them: the generator's inputs_and_labels().
LogitsCase case_of(const golden::Logits& expected) {
  const int64_t n = golden::examples, classes = golden::classes, side = expected.side;
  if (testing::tiny_loss(expected.model) == LossKind::token_cross_entropy) {
    const at::Tensor j = at::arange(n * side, at::kLong).view({n, side});
    return {{.classes = classes, .sizes = {side}, .tokens = classes, .labels = side},
            (j * j).remainder(classes),
            (3 * j + 1).remainder(classes)};
  }
  const InputShape shape{golden::channels, side, side, classes};
  const at::Tensor pixels = at::arange(n * shape.channels * side * side, at::kDouble);
  return {shape, (0.37 * pixels).sin().reshape({n, shape.channels, side, side}),
          at::arange(n, at::kLong).remainder(classes)};
}

class GoldenLogits : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Cases, GoldenLogits, ::testing::Range<size_t>(0, golden::logits.size()),
                         [](const auto& info) {
                           return golden::logits[info.param].model + std::to_string(info.param);
                         });

TEST_P(GoldenLogits, AgreeWithPyTorch) {
  const golden::Logits& expected = golden::logits[GetParam()];
  const LogitsCase given = case_of(expected);
  const auto model = testing::make_test_model(expected.model, expected.settings, given.shape);
  model->eval();
  model->set_norm_mode(NormMode::running);
  std::vector<at::Tensor> parameters;
  {
    at::NoGradGuard no_grad;
    for (const ParameterInfo& parameter : model->parameter_table()) {
      parameter.tensor.copy_(fill(parameter.name, parameter.tensor));
      parameters.push_back(parameter.tensor);
    }
    for (const auto& [name, buffer] : model->buffer_table()) buffer.copy_(fill(name, buffer));
  }

  const at::Tensor logits = model->forward(given.inputs);
  const at::Tensor loss = example_losses(testing::tiny_loss(expected.model), logits, given.labels).mean();
  double squares = 0;
  for (const at::Tensor& gradient : torch::autograd::grad({loss}, parameters)) {
    squares += gradient.square().sum().item<double>();
  }
  const at::Tensor reference = at::tensor(expected.logits, at::kDouble).view_as(logits);
  // float64 through at most 14 layers, sums in another order.
  EXPECT_TRUE(at::allclose(logits, reference, 1e-10, 1e-12)) << logits << reference;
  EXPECT_NEAR(std::sqrt(squares), expected.gradient_norm, 1e-10 * (1 + expected.gradient_norm));
}

}  // namespace
}  // namespace basin
