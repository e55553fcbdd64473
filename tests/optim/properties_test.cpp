// Which optimiser has which property: a row for each whose closed form is known, and a test for each column.
#include <gtest/gtest.h>
#include <malloc.h>

#include "core/seed.h"
#include "tests/optim/optim_support.h"
#include "tests/support/does_not_apply.h"

namespace basin {
namespace {

using namespace testing;
using Settings = std::vector<std::string>;

/// w after t steps of rate r on a/2 w^2 from w = 1, a and r such that no step overshoots.
using Path = double (*)(double a, double r, int t);

struct Properties {
  std::string name;
  Settings plain;   // without momentum, decay, eps and clips, which leaves of the method one formula
  bool scale_free;  // then the scale of a tensor's gradients is without effect
  Path path;        // ... and a quadratic is descended like this
  Settings with_memory;
  double spectral_radius;  // of the iteration on w^2/2 at rate 0.1 with the memory settings; NaN: not linear
};

// Modulus of the roots of z^2 - (1 + m - ra) z + m, ra = 0.1: of the heavy ball, where they are complex.
double heavy_ball(double m) {
  const double b = 1 + m - 0.1;
  return b * b < 4 * m ? std::sqrt(m) : NAN;
}

const std::vector<Properties>& table() {
  const Path geometric = [](double a, double r, int t) { return std::pow(1 - a * r, t); };
  const Path by_sign = [](double, double r, int t) { return 1 - r * t; };           // Adam's r = g / |g|
  const Path by_norm = [](double, double r, int t) { return std::pow(1 - r, t); };  // a share of |w| a step
  static const std::vector<Properties> rows{
      {"sgd", {"momentum=0"}, false, geometric, {"momentum=0.8"}, heavy_ball(0.8)},
      {"adam", {"beta1=0", "beta2=0", "eps=0"}, true, by_sign, {}, NAN},
      {"adamw", {"beta1=0", "beta2=0", "eps=0", "weight_decay=0"}, true, by_sign, {}, NAN},
      {"lars", {"momentum=0", "weight_decay=0", "trust_coefficient=1"}, true, by_norm, {}, NAN},
      {"larc",
       {"momentum=0", "weight_decay=0", "eps=0", "trust_coefficient=1", "clip=false"},
       true,
       by_norm,
       {},
       NAN},
      {"lamb", {"beta1=0", "beta2=0", "eps=0", "weight_decay=0"}, true, by_norm, {}, NAN},
      // No trust ratio without decay there, and else at most 1; |w| stays below.
      {"lambc",
       {"beta1=0", "beta2=0", "eps=0", "weight_decay=0", "max_gradient_norm=0", "exclude_from_trust=[]"},
       true,
       by_norm,
       {},
       NAN},
      {"lion", {"beta1=0"}, true, by_sign, {}, NAN},
      {"signsgd", {"momentum=0"}, true, by_sign, {}, NAN},
      {"adafactor", {"decay_rate=0", "scale_parameter=false"}, true, by_sign, {}, NAN},
      {"soap", {"beta1=0", "beta2=0", "eps=0", "weight_decay=0"}, true, by_sign, {}, NAN},
      // The first gradient is longer than 1, so the first step is one by norm; then H is the inverse curvature.
      {"lbfgs", {}, true, by_norm, {}, NAN},
  };
  return rows;
}

class OptimizerProperty : public ::testing::TestWithParam<std::string> {
 protected:
  /// Null where no closed form is known.
  static const Properties* row() {
    for (const Properties& row : table())
      if (row.name == GetParam()) return &row;
    return nullptr;
  }
};
#define NEEDS_A_ROW() \
  if (!row()) DOES_NOT_APPLY() << "no row: " << GetParam() << " has no closed form that is known"
INSTANTIATE_TEST_SUITE_P(Registry, OptimizerProperty, ::testing::ValuesIn(names_of(optimizer_registry())),
                         [](const auto& info) { return info.param; });

std::vector<double> after_scaled_gradients(const std::string& name, const Settings& settings, double scale) {
  const std::vector<ParameterInfo> one{make_parameter("fc.weight", ParameterKind::weight, {2, 1, -1})};
  const auto optimizer = make_test_optimizer(name, settings, one);
  for (int t = 0; t < 5; ++t) {
    set_gradient(one[0], {scale * (t + 1), -scale * 0.5, scale * (t - 2.5)});
    optimizer->set_learning_rate(0.1 / (t + 1));
    optimizer->step();
  }
  return values_of(one[0].tensor);
}

TEST_P(OptimizerProperty, ScaleOfGradients) {
  NEEDS_A_ROW();
  const auto usual = after_scaled_gradients(GetParam(), row()->plain, 1);
  const auto scaled = after_scaled_gradients(GetParam(), row()->plain, 1e4);
  double difference = 0;
  for (size_t j = 0; j < 3; ++j) difference = std::max(difference, std::abs(usual[j] - scaled[j]));
  // Roundings of numbers of order one, or a scale of 10^4.
  if (row()->scale_free) {
    EXPECT_LT(difference, 1e-13);
  } else {
    EXPECT_GT(difference, 1);
  }
}

std::vector<double> descend(const std::string& name, const Settings& settings, double curvature, double rate,
                            int steps) {
  const std::vector<ParameterInfo> one{make_parameter("fc.weight", ParameterKind::weight, {1})};
  const auto optimizer = make_test_optimizer(name, settings, one);
  optimizer->set_learning_rate(rate);
  std::vector<double> path;
  for (int t = 0; t < steps; ++t) {
    set_gradient(one[0], {curvature * values_of(one[0].tensor)[0]});
    optimizer->step();
    path.push_back(values_of(one[0].tensor)[0]);
  }
  return path;
}

TEST_P(OptimizerProperty, WithoutMemoryIsTheClosedForm) {
  NEEDS_A_ROW();
  const std::vector<double> path = descend(GetParam(), row()->plain, 3, 0.05, 15);
  for (size_t t = 0; t < path.size(); ++t)
    EXPECT_NEAR(path[t], row()->path(3, 0.05, static_cast<int>(t) + 1), 1e-14) << "step " << t + 1;
}

// Two roots of one modulus: Casorati's determinant w_t^2 - w_{t-1} w_{t+1} falls by their product, the squared rate, exactly.
TEST_P(OptimizerProperty, ConvergesAtThePredictedRate) {
  NEEDS_A_ROW();
  if (std::isnan(row()->spectral_radius)) DOES_NOT_APPLY() << "no linear iteration, so no rate from theory";
  const std::vector<double> w = descend(GetParam(), row()->with_memory, 1, 0.1, 103);
  const auto determinant = [&](size_t t) { return w[t] * w[t] - w[t - 1] * w[t + 1]; };
  EXPECT_NEAR(std::pow(determinant(101) / determinant(1), 1.0 / 200), row()->spectral_radius, 1e-12);
}

std::vector<ParameterInfo> three_tensors(at::ScalarType dtype) {
  at::Generator generator = make_generator(11);
  std::vector<ParameterInfo> parameters;
  for (const auto& [name, kind, sizes] :
       {std::tuple{"conv.weight", ParameterKind::weight, std::vector<int64_t>{8, 3, 3, 3}},
        {"conv.bias", ParameterKind::bias, {8}},
        {"fc.weight", ParameterKind::weight, {40, 1000}}}) {
    const at::Tensor values = at::empty(sizes, at::kFloat).normal_(0, 0.5, generator);
    parameters.push_back({name, "layer", kind, values.to(dtype).requires_grad_(true)});
  }
  return parameters;
}

/// Down a quadratic with curvatures from 0 to 1.
void take_steps(Optimizer& optimizer, const std::vector<ParameterInfo>& parameters, int steps) {
  for (int t = 0; t < steps; ++t) {
    for (const ParameterInfo& p : parameters) {
      at::Generator generator = make_generator(5);
      const at::Tensor curvature = at::empty(p.tensor.sizes(), at::kFloat).uniform_(0, 1, generator);
      at::Tensor(p.tensor).mutable_grad() = p.tensor.detach() * curvature.to(p.tensor.scalar_type());
    }
    optimizer.set_learning_rate(0.001 * (1 + t));
    optimizer.step();
  }
}

/// Largest |a - b| / (1 + |a|) over all elements.
double distance(const std::vector<ParameterInfo>& a, const std::vector<ParameterInfo>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const at::Tensor x = a[i].tensor.detach().cpu().to(at::kDouble),
                     y = b[i].tensor.detach().cpu().to(at::kDouble);
    most = std::max(most, x.sub(y).abs().div(x.abs().add(1)).max().item<double>());
  }
  return most;
}

// Twenty updates, each rounded to float32 (6e-8) in state and weights; Adam's r of an element with a tiny gradient magnifies
// a rounding up to a hundred times. With overlap (L-BFGS) y is the difference of two gradients a thousandth apart: a thousand times;
// and so does an inverse root (Shampoo), up to eps^(-1/2) = 1000 where a vector's gradients had no part.
TEST_P(OptimizerProperty, Float32FollowsFloat64) {
  const OptimizerEntry& entry = find_entry(optimizer_registry(), GetParam(), "optimizer");
  if (entry.traits(*entry.make_options()).magnifies_rounding)
    DOES_NOT_APPLY() << "40 gradients leave 960 of 1000 directions of its basis open";
  const auto exact = three_tensors(at::kDouble), rounded = three_tensors(at::kFloat);
  take_steps(*make_test_optimizer(GetParam(), {}, exact), exact, 20);
  const auto optimizer = make_test_optimizer(GetParam(), {}, rounded);
  take_steps(*optimizer, rounded, 20);
  const double found = distance(exact, rounded);
  const bool has_roots = !optimizer->preconditioner_bases().empty();
  EXPECT_LT(found, optimizer->overlap() > 0 || has_roots ? 1e-4 : 1e-5);
  EXPECT_GT(found, 0);  // or nothing was rounded
}

// Nothing that a step allocates outlives it.
TEST_P(OptimizerProperty, TenThousandStepsHoldNoMoreMemoryThanOneHundred) {
  const std::vector<ParameterInfo> one{
      make_parameter("fc.weight", ParameterKind::weight, {2, 1, -1}, at::kFloat)};
  const auto optimizer = make_test_optimizer(GetParam(), {}, one);
  optimizer->set_learning_rate(1e-6);
  set_gradient(one[0], {0.1, -0.2, 0.3});
  const auto held_after = [&](int steps) {
    for (int t = 0; t < steps; ++t) optimizer->step();
    return mallinfo2().uordblks;
  };
  const size_t before = held_after(100);
  // Other allocations of the process: a page. One pointer per step would be twenty.
  EXPECT_LT(held_after(10000), before + 4096);
}

}  // namespace
}  // namespace basin
