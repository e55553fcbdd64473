// The ledger while training: closed forms where a batch's loss is a quadratic, and that nothing of the run changes.
#include "trainers/hooks/ledger.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "data/network_inputs.h"
#include "tests/trainers/test_run.h"
#include "trainers/hooks/example_noise.h"
#include "trainers/hooks/noise_gauge.h"

namespace basin::testing {
namespace {

enum : size_t {
  update,
  share,
  first_order,
  decrease,
  batch_loss,
  cosine,
  critical,
  low,
  high,
  rate,
  ratio,
  noise,
  gradient,
  passes,
  status
};

/// The mean gradient of a batch's squared errors against one-hot labels, by autograd alone.
std::vector<at::Tensor> batch_gradient(TestRun& run, int64_t start, int64_t count) {
  ExampleStream stream(static_cast<uint64_t>(run.settings.train.seed), run.data.train.size());
  const at::Tensor index = at::tensor(stream.slice(start, count, false).examples, at::kLong);
  const at::Tensor inputs = network_inputs(run.data, run.data.train, index, at::kDouble, at::kCPU);
  const at::Tensor logits = run.model->forward(inputs);
  const at::Tensor wanted =
      at::one_hot(run.data.train.labels.index_select(0, index), logits.size(1)).to(at::kDouble);
  std::vector<at::Tensor> weights;
  for (const ParameterInfo& p : run.model->parameter_table()) weights.push_back(p.tensor);
  return torch::autograd::grad({(logits - wanted).square().sum(1).mul(0.5).mean()}, weights);
}

RunSettings ledgered(int64_t every) {
  RunSettings s = small_settings();
  s.train.updates = 8;
  s.train.micro_batch = 10;
  s.train.hook<LedgerGaugeOptions>().every = every;
  return s;
}

/// A linear network under squared error: every batch's loss is a quadratic in the weights.
RunSettings quadratic() {
  RunSettings s = ledgered(1);
  s.model_settings = {"hidden=[]"};
  s.optimizer_settings = {"momentum=0"};
  s.train.loss = "mse";
  s.train.learning_rate = 0.001;
  s.train.hook<LedgerGaugeOptions>().tolerance = 1e-6;
  return s;
}

TEST(LedgerGauge, OnAQuadraticAllFollowsFromSlopeAndCurvature) {
  TestRun run(quadratic());
  run.run();
  const auto& rows = run.listener.rows.at("ledger");
  ASSERT_EQ(rows.size(), 8u);
  for (size_t t = 0; t < rows.size(); ++t) {
    const std::vector<double>& row = rows[t];
    const UpdateRecord& record = run.listener.updates[t];
    const double squared = record.gradient_norm * record.gradient_norm;
    EXPECT_EQ(row[status], 0);
    EXPECT_EQ(row[batch_loss], record.loss);
    // float64 sums of some hundred terms
    EXPECT_NEAR(row[first_order], record.learning_rate * squared, 1e-10 * row[first_order]);
    // L(w - eta g) = L - eta g'g + eta^2 g'Hg / 2, and the loss is back at L at eta_c = 2 g'g / g'Hg.
    EXPECT_NEAR(row[share], 1 - record.learning_rate * row[critical] / 2,
                2e-6 * record.learning_rate * row[critical]);
    EXPECT_LT(row[low], row[critical]);
    EXPECT_GT(row[high], row[critical]);
    EXPECT_LE(row[high] - row[low], 1.1e-6 * row[critical]);  // the tolerance
  }
}

// The curvature along the first gradient from finite differences of gradients that autograd alone computes.
TEST(LedgerGauge, CriticalSharpnessIsTheCurvatureAlongTheGradient) {
  TestRun run(quadratic()), at_start(quadratic());
  const auto flat = [](const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> all;
    for (const at::Tensor& tensor : tensors) all.push_back(tensor.flatten().to(at::kDouble));
    return at::cat(all);
  };
  const auto mse_gradient = [&] {
    const int64_t b = at_start.settings.train.batch_size;
    return flat(batch_gradient(at_start, 0, b));
  };
  const at::Tensor g = mse_gradient();
  {
    const at::NoGradGuard no_grad;
    int64_t first = 0;
    for (const ParameterInfo& parameter : at_start.model->parameter_table()) {
      const int64_t n = parameter.tensor.numel();
      parameter.tensor.detach().add_(g.narrow(0, first, n).view(parameter.tensor.sizes()));
      first += n;
    }
  }
  const at::Tensor curved = mse_gradient() - g;  // H g, exactly: the gradient is linear
  run.run();
  const double expected = ((curved * g).sum() / (g * g).sum()).item<double>();
  EXPECT_NEAR(run.listener.rows.at("ledger")[0][critical], expected, 2e-6 * expected);  // the tolerance
}

TEST(LedgerGauge, ChangesNothing) {
  for (const char* model : {"mlp", "small_cnn"}) {
    RunSettings on = ledgered(3), off = ledgered(0);
    for (RunSettings* s : {&on, &off}) {
      s->model = model;
      s->model_settings = std::string(model) == "mlp"
                              ? std::vector<std::string>{"hidden=[6]"}
                              : std::vector<std::string>{"widths=[3, 4]", "norm=batch"};
      s->train.ghost_batch = 10;
      s->data.augmentation = "crop_flip";
    }
    TestRun with(on), without(off);
    const TrainResult a = with.run(), b = without.run();
    EXPECT_TRUE(with.weights().equal(without.weights())) << model;
    EXPECT_EQ(number(a, "test_loss"), number(b, "test_loss")) << model;
    ASSERT_EQ(with.listener.rows.at("ledger").size(), 2u);  // updates 3 and 6
    EXPECT_EQ(number(a, "gradients"), number(b, "gradients"));
  }
}

// The gradient is that of weighted examples, the loss that of plain ones: what one promises of the other means nothing.
TEST(LedgerGauge, UnderNoiseHasNothingOfTheGradient) {
  RunSettings s = ledgered(2);
  s.train.hook<ExampleNoiseOptions>().batch = 5;
  TestRun run(s);
  run.run();
  const auto& rows = run.listener.rows.at("ledger");
  ASSERT_EQ(rows.size(), 4u);
  for (const std::vector<double>& row : rows) {
    for (const size_t column : {share, first_order, noise, gradient, ratio})
      EXPECT_TRUE(std::isnan(row[column])) << column;
    EXPECT_TRUE(std::isfinite(row[decrease]) && std::isfinite(row[batch_loss]));
  }
}

TEST(LedgerGauge, NoiseIsThatOfTheNoiseGauge) {
  RunSettings s = ledgered(2);
  s.train.hook<NoiseGaugeOptions>().every = 2;
  TestRun run(s);
  run.run();
  const auto& rows = run.listener.rows.at("ledger");
  const auto& theirs = run.listener.rows.at("noise_scale");
  const double n = 200, b = static_cast<double>(s.train.batch_size);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i][gradient], theirs[i][8]);
    // without replacement: tr Sigma N / (N - 1) (1/B - 1/N)
    EXPECT_NEAR(rows[i][noise], theirs[i][9] * n / (n - 1) * (1 / b - 1 / n),
                1e-12 * std::abs(rows[i][noise]));
  }
}

TEST(LedgerGauge, SuccessiveStepsOfPlainGradientDescentOnAFlatLossPointTheSameWay) {
  RunSettings s = quadratic();
  s.train.batch_size = 200;  // the whole set: no noise
  s.train.learning_rate = 1e-5;
  TestRun run(s);
  run.run();
  const auto& rows = run.listener.rows.at("ledger");
  EXPECT_TRUE(std::isnan(rows[0][cosine]));
  for (size_t t = 1; t < rows.size(); ++t) {
    EXPECT_GT(rows[t][cosine], 0.999);
    EXPECT_NEAR(rows[t][noise], 0, 1e-9 * rows[t][gradient]);  // B = N
  }
}

}  // namespace
}  // namespace basin::testing
