// Properties that follow from the formulas by algebra.
#include <gtest/gtest.h>

#include "tests/optim/optim_support.h"

namespace basin {
namespace {

using namespace testing;

// w_t on L = a/2 w^2 under momentum 0: w_0 (1 - lr a)^t.
TEST(Sgd, WithoutMomentumDecaysGeometrically) {
  const std::vector<ParameterInfo> parameters{make_parameter("fc.weight", ParameterKind::weight, {1.5})};
  const auto optimizer = make_test_optimizer("sgd", {"momentum=0.0"}, parameters);
  optimizer->set_learning_rate(0.1);
  for (int t = 0; t < 10; ++t) {
    set_gradient(parameters[0], {2 * values_of(parameters[0].tensor)[0]});
    optimizer->step();
  }
  EXPECT_NEAR(values_of(parameters[0].tensor)[0], 1.5 * std::pow(0.8, 10), 1e-15);
  EXPECT_EQ(optimizer->state().size(), 1U);  // the count of updates alone
}

// With momentum m the iterates on a/2 w^2 obey w_{t+1} = (1 + m - lr a) w_t - m w_{t-1}.
TEST(Sgd, MomentumObeysTheHeavyBallRecurrence) {
  const std::vector<ParameterInfo> parameters{make_parameter("fc.weight", ParameterKind::weight, {1.5})};
  const auto optimizer = make_test_optimizer("sgd", {"momentum=0.9"}, parameters);
  optimizer->set_learning_rate(0.1);
  std::vector<double> path{1.5, 1.5};  // w_{-1} = w_0: the buffer starts at zero
  for (int t = 0; t < 20; ++t) {
    set_gradient(parameters[0], {2 * values_of(parameters[0].tensor)[0]});
    optimizer->step();
    path.push_back((1 + 0.9 - 0.2) * path[path.size() - 1] - 0.9 * path[path.size() - 2]);
    EXPECT_NEAR(values_of(parameters[0].tensor)[0], path.back(), 1e-14);
  }
}

// Multiplying a layer's gradients by a constant changes neither LARS without weight decay nor LAMB without
// eps.
TEST(TrustRatio, MakesTheStepIndependentOfTheGradientsScale) {
  const std::vector<std::vector<std::string>> settings{{"lars", "weight_decay=0.0"}, {"lamb", "eps=0.0"}};
  for (const auto& [name, setting] :
       {std::pair{settings[0][0], settings[0][1]}, {settings[1][0], settings[1][1]}}) {
    std::vector<std::vector<double>> ends;
    for (double scale : {1.0, 1e4}) {
      const std::vector<ParameterInfo> parameters{
          make_parameter("fc.weight", ParameterKind::weight, {2, 1, -1})};
      const auto optimizer = make_test_optimizer(name, {setting}, parameters);
      for (int t = 0; t < 5; ++t) {
        set_gradient(parameters[0], {scale * (t + 1), -scale * 0.5, scale * (t - 2.0)});
        optimizer->set_learning_rate(0.1 / (t + 1));
        optimizer->step();
      }
      ends.push_back(values_of(parameters[0].tensor));
    }
    for (size_t j = 0; j < 3; ++j)
      EXPECT_NEAR(ends[0][j], ends[1][j], 1e-13) << name;  // roundings of order-1 numbers
  }
}

// Without momentum the step of a layer is lr trust |w| for LARS and lr |w| for LAMB, whatever the gradient.
TEST(TrustRatio, SetsTheStepsLength) {
  const double weight_norm = norm_by_hand({2, 1, -1});
  const std::vector<ParameterInfo> lars_parameters{
      make_parameter("fc.weight", ParameterKind::weight, {2, 1, -1})};
  const auto lars = make_test_optimizer(
      "lars", {"momentum=0.0", "weight_decay=0.0", "trust_coefficient=0.02"}, lars_parameters);
  const std::vector<ParameterInfo> lamb_parameters{
      make_parameter("fc.weight", ParameterKind::weight, {2, 1, -1})};
  const auto lamb = make_test_optimizer("lamb", {}, lamb_parameters);
  for (const auto& [optimizer, parameter] :
       {std::pair{lars.get(), lars_parameters[0]}, {lamb.get(), lamb_parameters[0]}}) {
    set_gradient(parameter, {0.01, -0.7, 0.3});
    optimizer->set_learning_rate(0.5);
    optimizer->step();
  }
  EXPECT_NEAR(lars->last_step()[0].update_norm, 0.5 * 0.02 * weight_norm, 1e-15);
  EXPECT_NEAR(lamb->last_step()[0].update_norm, 0.5 * weight_norm, 1e-15);
}

// The first Adam step is lr sign(g), as its two moments cancel.
TEST(AdamW, FirstStepIsTheSign) {
  const std::vector<ParameterInfo> parameters{make_parameter("fc.weight", ParameterKind::weight, {1, 1, 1})};
  const auto optimizer = make_test_optimizer("adamw", {"weight_decay=0.0", "eps=0.0"}, parameters);
  optimizer->set_learning_rate(0.25);
  set_gradient(parameters[0], {3, -1e-3, 0});
  optimizer->step();
  const auto end = values_of(parameters[0].tensor);
  EXPECT_NEAR(end[0], 0.75, 1e-15);
  EXPECT_NEAR(end[1], 1.25, 1e-15);
  EXPECT_EQ(end[2], 1);
}

// The paper says nothing of |u| = 0: the ratio then counts as 1, not as |w|/0, and the tensor stays where it
// is.
TEST(Lamb, TakesRatioOneWhereThereIsNoDirection) {
  const std::vector<ParameterInfo> parameters{make_parameter("fc.weight", ParameterKind::weight, {3, 4})};
  const auto optimizer = make_test_optimizer("lamb", {"weight_decay=0.0"}, parameters);
  optimizer->set_learning_rate(0.1);
  set_gradient(parameters[0], {0, 0});
  optimizer->step();
  EXPECT_EQ(values_of(parameters[0].tensor), (std::vector<double>{3, 4}));
  EXPECT_EQ(optimizer->last_step()[0].trust_ratio, 1);
  EXPECT_EQ(optimizer->last_step()[0].update_norm, 0);
}

// eps = 0 stays 0: a NaN gradient still shows, and elements without gradient don't make one.
TEST(Lamb, ZeroEpsKeepsNaNsOfTheGradient) {
  const std::vector<ParameterInfo> parameters{make_parameter("fc.weight", ParameterKind::weight, {1, 1})};
  const auto optimizer = make_test_optimizer("lamb", {"eps=0.0"}, parameters);
  optimizer->set_learning_rate(0.1);
  set_gradient(parameters[0], {0, 1});
  optimizer->step();
  EXPECT_TRUE(std::isfinite(values_of(parameters[0].tensor)[0]));
  set_gradient(parameters[0], {NAN, 1});
  optimizer->step();
  EXPECT_TRUE(std::isnan(values_of(parameters[0].tensor)[0]));
}

}  // namespace
}  // namespace basin
