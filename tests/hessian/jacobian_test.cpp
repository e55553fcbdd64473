#include "hessian/jacobian.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "hessian/parameter_vector.h"
#include "tests/support/analytic_models.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

TEST(Jacobian, ProductsAreThoseOfCentralDifferences) {
  const auto model = testing::tiny_mlp();  // tanh
  const testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 7);
  const ParameterVector vector(model->parameter_table());
  const at::Tensor v = testing::sine_numbers({143}, 5), u = testing::sine_numbers({7, 3}, 900);
  const Jacobian jacobian(vector.tensors(), model->forward(batch.images));
  const at::Tensor along_v = jacobian.times(vector.unflatten(v));
  const at::Tensor along_u = vector.flatten(jacobian.transposed_times(u));
  const at::Tensor w = vector.gather();
  const double step = 1e-5;  // error of order step^2, rounding of order 1e-16/step
  const auto moved = [&](double by) {
    const at::NoGradGuard no_grad;
    vector.scatter(w + v * by);
    return model->forward(batch.images);
  };
  const at::Tensor differences = (moved(step) - moved(-step)) / (2 * step);
  vector.scatter(w);
  EXPECT_LT((along_v - differences).abs().max().item<double>(), 1e-9);
  // u . J v = J'u . v
  EXPECT_NEAR((u * along_v).sum().item<double>(), along_u.dot(v).item<double>(), 1e-12);
}

TEST(Jacobian, OfOutputsThatHangOnNoParameterIsUndefined) {
  const at::Tensor w = at::ones({3}, at::kDouble).requires_grad_(true);
  const at::Tensor other = at::ones({2}, at::kDouble).requires_grad_(true);
  const Jacobian jacobian({w}, other * 2);
  EXPECT_FALSE(jacobian.times({at::ones({3}, at::kDouble)}).defined());
  EXPECT_FALSE(jacobian.transposed_times(at::ones({2}, at::kDouble)).front().defined());
}

}  // namespace
}  // namespace basin
