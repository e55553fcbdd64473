// Every entry of the optimiser registry must pass these.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/math/tensor_norms.h"
#include "core/seed.h"
#include "tests/optim/optim_support.h"
#include "tests/support/does_not_apply.h"

namespace basin {
namespace {

using namespace testing;

std::vector<ParameterInfo> two_layers(at::ScalarType dtype = at::kFloat) {
  at::Generator generator = make_generator(7);
  const auto leaf = [&](std::vector<int64_t> sizes) {
    return at::empty(sizes, at::kFloat).normal_(0, 1, generator).to(dtype).requires_grad_(true);
  };
  return {{"conv1.weight", "conv1", ParameterKind::weight,
           leaf({4, 3, 3, 3}).detach().contiguous(at::MemoryFormat::ChannelsLast).requires_grad_(true)},
          {"conv1.bias", "conv1", ParameterKind::bias, leaf({4})},
          {"fc.weight", "fc", ParameterKind::weight, leaf({5, 6})}};
}

// Different at every step, in memory formats of their own.
void set_gradients(const std::vector<ParameterInfo>& parameters, uint64_t step) {
  at::Generator generator = make_generator(100 + step);
  for (const ParameterInfo& p : parameters) {
    const at::Tensor gradient = at::empty(p.tensor.sizes(), at::kFloat).normal_(0, 0.3, generator);
    at::Tensor(p.tensor).mutable_grad() = gradient.to(p.tensor.scalar_type());
  }
}

void run(Optimizer& optimizer, const std::vector<ParameterInfo>& parameters, uint64_t first, uint64_t last,
         double rate = 0.01) {
  for (uint64_t step = first; step < last; ++step) {
    set_gradients(parameters, step);
    optimizer.set_learning_rate(rate * static_cast<double>(step + 1));
    optimizer.step();
  }
}

std::vector<ParameterInfo> copy_of(const std::vector<ParameterInfo>& parameters) {
  std::vector<ParameterInfo> copies = parameters;
  for (ParameterInfo& p : copies) p.tensor = p.tensor.detach().clone().requires_grad_(true);
  return copies;
}

class OptimizerContract : public ::testing::TestWithParam<std::string> {
 protected:
  static const OptimizerEntry& entry() { return find_entry(optimizer_registry(), GetParam(), "optimizer"); }
};
INSTANTIATE_TEST_SUITE_P(Registry, OptimizerContract, ::testing::ValuesIn(names_of(optimizer_registry())),
                         [](const auto& info) { return info.param; });

TEST_P(OptimizerContract, StateRoundTripContinuesBitEqual) {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const auto parameters = two_layers(dtype);
    const auto optimizer = make_test_optimizer(GetParam(), {}, parameters);
    run(*optimizer, parameters, 0, 3);
    const NamedTensors state = optimizer->state();
    const auto resumed_parameters = copy_of(parameters);
    run(*optimizer, parameters, 3, 6);

    const auto resumed = make_test_optimizer(GetParam(), {}, resumed_parameters);
    resumed->load_state(state);  // a copy: the steps since haven't changed it
    run(*resumed, resumed_parameters, 3, 6);
    for (size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_TRUE(at::equal(parameters[i].tensor, resumed_parameters[i].tensor)) << parameters[i].name;
    }
    // Without the state it would have gone elsewhere.
    const auto fresh_parameters = two_layers(dtype);
    const auto fresh = make_test_optimizer(GetParam(), {}, fresh_parameters);
    run(*fresh, fresh_parameters, 3, 6);
    EXPECT_FALSE(at::equal(parameters[0].tensor, fresh_parameters[0].tensor));
  }
}

/// Q D^{-1} Q' g with Q the dense Kronecker product of the bases.
at::Tensor divided(const at::Tensor& gradient, const at::Tensor& diagonal, const KroneckerFactors& bases) {
  at::Tensor q = at::ones({1, 1}, at::kDouble);
  for (size_t d = 0; d < bases.size(); ++d)
    q = at::kron(
        q, bases[d].defined() ? bases[d] : at::eye(gradient.size(static_cast<int64_t>(d)), at::kDouble));
  const at::Tensor g = gradient.reshape({-1}), p = diagonal.reshape({-1});
  return at::mv(q, at::mv(q.t(), g) / p).view(gradient.sizes());
}

/// The preconditioner is that of one step, from a state of three.
void expect_preconditioner_of_the_step(const std::string& name, const std::vector<std::string>& settings) {
  const auto parameters = two_layers(at::kDouble);
  const auto optimizer = make_test_optimizer(name, settings, parameters);
  run(*optimizer, parameters, 0, 3);
  const auto before = copy_of(parameters);
  run(*optimizer, parameters, 3, 4);  // sets the rate 0.04 and the fourth gradients, and steps
  std::vector<at::Tensor> gradients, after;
  for (size_t i = 0; i < parameters.size(); ++i) {
    gradients.push_back(parameters[i].tensor.grad());
    after.push_back(parameters[i].tensor.detach().clone());
    parameters[i].tensor.detach().copy_(before[i].tensor.detach());  // trust ratios are those before the step
  }
  const std::vector<at::Tensor> p = optimizer->preconditioner(gradients);
  const std::vector<KroneckerFactors> bases = optimizer->preconditioner_bases();
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE((p[i] > 0).all().item<bool>());
    const at::Tensor expected =
        -0.04 * (bases.empty() ? gradients[i] / p[i] : divided(gradients[i], p[i], bases[i]));
    const at::Tensor step = after[i] - before[i].tensor.detach();
    // Rounding of two ways to the same number in float64.
    EXPECT_TRUE(at::allclose(step, expected, 1e-10, 1e-14)) << parameters[i].name;
  }
}

/// After three updates, at the gradients of the fourth.
std::vector<at::Tensor> preconditioner_of(const std::string& name) {
  const auto parameters = two_layers(at::kDouble);
  const auto optimizer = make_test_optimizer(name, {}, parameters);
  run(*optimizer, parameters, 0, 3);
  set_gradients(parameters, 3);
  std::vector<at::Tensor> gradients;
  for (const ParameterInfo& p : parameters) gradients.push_back(p.tensor.grad());
  return optimizer->preconditioner(gradients);
}

TEST_P(OptimizerContract, PreconditionerIsThatOfTheStep) {
  if (!entry().traits(*entry().make_options()).has_preconditioner)
    DOES_NOT_APPLY() << "steps by no diagonal in any basis";
  std::vector<std::string> settings = entry().memoryless;
  expect_preconditioner_of_the_step(GetParam(), settings);
  if (!entry().factors) return;
  settings.emplace_back("lr_factors=[\"bias=8\", \"name:fc*=0.3\"]");
  expect_preconditioner_of_the_step(GetParam(), settings);
}

/// Whether every slot's tensors are as large as the parameters, or empty.
bool has_state_by_weight(const Optimizer& optimizer) {
  std::map<std::string, int64_t> sizes;
  for (const ParameterInfo& p : optimizer.parameter_table()) sizes[p.name] = p.tensor.numel();
  for (const auto& [name, tensor] : optimizer.state()) {
    const size_t slash = name.find('/');
    if (slash == std::string::npos || tensor.numel() == 0) continue;
    if (tensor.numel() != sizes.at(name.substr(slash + 1))) return false;
  }
  return true;
}

// Squares are nowhere below 0; gradients and steps of both signs are.
TEST_P(OptimizerContract, TraitsAreThoseOfTheMethod) {
  const OptimizerTraits traits = entry().traits(*entry().make_options());
  const auto parameters = two_layers();
  const auto optimizer = make_test_optimizer(GetParam(), {}, parameters);
  EXPECT_EQ(traits.overlap, optimizer->overlap());
  run(*optimizer, parameters, 0, 3);
  EXPECT_EQ(traits.state_by_weight, has_state_by_weight(*optimizer));
  std::set<std::string> squares, others;
  for (const auto& [name, tensor] : optimizer->state()) {
    const size_t slash = name.find('/');
    if (slash == std::string::npos || !tensor.any().item<bool>())
      continue;  // a counter, a slot not in use yet
    ((tensor >= 0).all().item<bool>() ? squares : others).insert(name.substr(0, slash));
  }
  for (const std::string& slot : others) squares.erase(slot);  // a small tensor may have one sign by chance
  EXPECT_EQ(squares, std::set<std::string>(traits.squares_in.begin(), traits.squares_in.end()));
  bool all_ones = true, any_nan = false;
  for (const at::Tensor& p : preconditioner_of(GetParam())) {
    any_nan = any_nan || p.isnan().any().item<bool>();
    all_ones = all_ones && (p == 1).all().item<bool>();
  }
  EXPECT_EQ(any_nan, !traits.has_preconditioner);
  // A clipped trust ratio may be 1 here too (LARC), so the converse doesn't hold.
  EXPECT_EQ(traits.steps_along_gradients,
            all_ones && !optimizer->has_trust_ratios() && !traits.gradients_elsewhere);
  // The first tensor's way among the others, and alone.
  const auto alone = std::vector<ParameterInfo>{two_layers().front()};
  run(*make_test_optimizer(GetParam(), {}, alone), alone, 0, 3);
  EXPECT_EQ(traits.couples_tensors, !at::equal(alone[0].tensor, parameters[0].tensor));
}

// Gradients are of the weights, but for methods that say so; and the weights come back as they were.
TEST_P(OptimizerContract, GradientsAreElsewhereWhereTheTraitsSaySo) {
  const auto parameters = two_layers();
  const auto optimizer = make_test_optimizer(GetParam(), {}, parameters);
  run(*optimizer, parameters, 0, 3);
  const auto before = copy_of(parameters);
  optimizer->go_to_gradient_point();
  const bool moved = !at::equal(parameters[0].tensor, before[0].tensor);
  EXPECT_EQ(moved, entry().traits(*entry().make_options()).gradients_elsewhere);
  optimizer->leave_gradient_point();
  for (size_t i = 0; i < parameters.size(); ++i)
    EXPECT_TRUE(at::equal(parameters[i].tensor, before[i].tensor)) << parameters[i].name;
}

// Wherever a rule has the rate or the decay the factor stands with it: a power of two on all of them is
// another rate and another decay, bit for bit.
TEST_P(OptimizerContract, FactorsOnAllAreAnotherRateAndDecay) {
  if (!entry().factors) DOES_NOT_APPLY() << "has no factors: docs/optimizers.md";
  const auto with = two_layers(), without = two_layers(), untouched = two_layers();
  const auto by_factors =
      make_test_optimizer(GetParam(),
                          {"exclude_from_decay=[]", "weight_decay=0.25", "lr_factors=[\"dim<=9=2\"]",
                           "decay_factors=[\"dim<=9=0.125\"]"},
                          with);
  const auto twin =
      make_test_optimizer(GetParam(), {"exclude_from_decay=[]", "weight_decay=0.03125"}, without);
  run(*by_factors, with, 0, 4, 0.01);
  run(*twin, without, 0, 4, 0.02);
  const NamedTensors state = by_factors->state(), expected = twin->state();
  ASSERT_EQ(state.size(), expected.size());
  for (size_t i = 0; i < state.size(); ++i) {
    EXPECT_EQ(state[i].first, expected[i].first);
    const bool is_number =
        state[i].first.find('/') == std::string::npos && state[i].second.is_floating_point();
    if (is_number) continue;  // of the rate itself, without factors
    EXPECT_TRUE(at::equal(state[i].second, expected[i].second)) << state[i].first;
  }
  for (size_t i = 0; i < with.size(); ++i) {
    EXPECT_TRUE(at::equal(with[i].tensor, without[i].tensor)) << with[i].name;
    EXPECT_FALSE(at::equal(with[i].tensor, untouched[i].tensor)) << with[i].name;
    EXPECT_EQ(by_factors->last_step()[i].update_norm, twin->last_step()[i].update_norm);
  }
}

/// Distance from the minimum of 1/2 |w|^2 after 400 steps of the given rate from w = 1.
double quadratic_after(const std::string& name, const std::vector<std::string>& settings, double rate) {
  const std::vector<ParameterInfo> one = {make_parameter("fc.weight", ParameterKind::weight, {1.0})};
  const auto optimizer = make_test_optimizer(name, settings, one);
  optimizer->set_learning_rate(rate);
  for (int step = 0; step < 400; ++step) {
    at::Tensor(one[0].tensor).mutable_grad() = one[0].tensor.detach().clone();
    optimizer->step();
  }
  return std::abs(one[0].tensor.item<double>());
}

TEST(StabilityLimit, IsWhereSgdStartsToGrow) {
  for (const std::vector<std::string>& settings :
       std::vector<std::vector<std::string>>{{"momentum=0"},
                                             {"momentum=0", "dampening=0.5"},
                                             {"momentum=0.9"},
                                             {"momentum=0.9", "dampening=0.4"},
                                             {"momentum=0.6", "nesterov=true"}}) {
    const auto sgd = make_test_optimizer("sgd", settings, two_layers());
    const double limit = sgd->stability_limit();  // of rate x curvature; the curvature is 1
    EXPECT_LT(quadratic_after("sgd", settings, 0.98 * limit), 1e-1) << settings.back();
    EXPECT_GT(quadratic_after("sgd", settings, 1.02 * limit), 1e1) << settings.back();
  }
}

// The limit is on rate times the curvature of P^{-1} H, P the inverse factor.
TEST(StabilityLimit, HoldsForTheCurvatureThatAFactorLeaves) {
  const std::vector<std::string> settings{"momentum=0.9", "lr_factors=[\"weight=4\"]"};
  const std::vector<ParameterInfo> one{make_parameter("fc.weight", ParameterKind::weight, {1.0})};
  const auto sgd = make_test_optimizer("sgd", settings, one);
  const double limit = sgd->stability_limit() * sgd->preconditioner({})[0].item<double>();
  EXPECT_LT(quadratic_after("sgd", settings, 0.98 * limit), 1e-1);
  EXPECT_GT(quadratic_after("sgd", settings, 1.02 * limit), 1e1);
}

TEST(StabilityLimit, OfMovingAveragesIsSgdsWithDampening) {
  // m <- beta m + (1 - beta) g is SGD's buffer with dampening beta; trust ratios leave no limit.
  const auto adam = make_test_optimizer("adamw", {"beta1=0.8"}, two_layers());
  const auto sgd = make_test_optimizer("sgd", {"momentum=0.8", "dampening=0.8"}, two_layers());
  EXPECT_DOUBLE_EQ(adam->stability_limit(), sgd->stability_limit());
  EXPECT_DOUBLE_EQ(adam->stability_limit(), 18);  // 2 * 1.8 / 0.2
  EXPECT_TRUE(std::isnan(make_test_optimizer("lars", {}, two_layers())->stability_limit()));
  EXPECT_TRUE(std::isnan(make_test_optimizer("lamb", {}, two_layers())->stability_limit()));
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const IoError& error) {
    return error.what();
  }
  return "no IoError";
}

TEST_P(OptimizerContract, ForeignStateIsRefused) {
  const auto parameters = two_layers();
  const auto optimizer = make_test_optimizer(GetParam(), {}, parameters);
  run(*optimizer, parameters, 0, 1);
  const NamedTensors good = optimizer->state();
  NamedTensors state = good;
  state.pop_back();
  EXPECT_NE(error_of([&] { optimizer->load_state(state); }).find("lacks \"" + good.back().first),
            std::string::npos);
  state = good;
  state.emplace_back("momentum/unknown", at::zeros({1}));
  EXPECT_NE(error_of([&] { optimizer->load_state(state); }).find("momentum/unknown"), std::string::npos);
  state = good;
  state.back().second = at::zeros({3, 2});
  EXPECT_NE(error_of([&] { optimizer->load_state(state); }).find(good.back().first), std::string::npos);
  state = good;
  state.back().second = state.back().second.to(at::kDouble);
  EXPECT_NE(error_of([&] { optimizer->load_state(state); }).find("Double"), std::string::npos);
}

TEST_P(OptimizerContract, GradientIsUnchangedAndMissingOnesCountAsZero) {
  const auto parameters = two_layers();
  const auto optimizer = make_test_optimizer(GetParam(), {}, parameters);
  optimizer->set_learning_rate(0.1);
  for (uint64_t step = 0; step < 3; ++step) {
    set_gradients(parameters, step);
    at::Tensor(parameters[1].tensor).mutable_grad() = at::Tensor();
    const at::Tensor before = parameters[0].tensor.grad().clone();
    const at::Tensor unmoved = parameters[1].tensor.detach().clone();
    optimizer->step();
    EXPECT_TRUE(at::equal(parameters[0].tensor.grad(), before));
    EXPECT_FALSE(parameters[1].tensor.grad().defined());
    EXPECT_TRUE(at::equal(parameters[1].tensor, unmoved));  // a bias: no weight decay either
    EXPECT_EQ(optimizer->last_step()[1].gradient_norm, 0);
    EXPECT_EQ(optimizer->last_step()[1].update_norm, 0);
  }
}

// Where a tensor has no ratio the report is NaN, not 1; and the two tables say what was done.
TEST_P(OptimizerContract, ReportsTrustRatiosWhereItHasThem) {
  const auto parameters = two_layers();
  const auto optimizer = make_test_optimizer(GetParam(), {}, parameters);
  run(*optimizer, parameters, 0, 1);
  EXPECT_EQ(optimizer->has_trust_ratios(), !optimizer->trust_ratio_definition().empty());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool trusted = optimizer->has_trust_ratios() && optimizer->treatment_table()[i].trust;
    EXPECT_EQ(std::isfinite(optimizer->last_step()[i].trust_ratio), trusted) << parameters[i].name;
  }
}

struct AfterSteps {
  std::vector<at::Tensor> weights;
  NamedTensors state;
  std::vector<ParameterStep> last;
};

// Three updates of a tensor in several pieces, its last one neither a whole chunk nor a whole block.
AfterSteps large_steps(const std::string& method, int threads) {
  const int before = at::get_num_threads();
  at::set_num_threads(threads);
  at::Generator generator = make_generator(11);
  const auto leaf = [&](int64_t size) {
    return at::empty({size}, at::kDouble).normal_(0, 1, generator).requires_grad_(true);
  };
  const std::vector<ParameterInfo> parameters{
      {"fc.weight", "fc", ParameterKind::weight, leaf(3 * 65536 + 301)},
      {"fc.bias", "fc", ParameterKind::bias, leaf(7)}};
  const auto optimizer = make_test_optimizer(method, {}, parameters);
  run(*optimizer, parameters, 0, 3);
  at::set_num_threads(before);
  AfterSteps after{{}, optimizer->state(), optimizer->last_step()};
  for (const ParameterInfo& p : parameters) after.weights.push_back(p.tensor.detach());
  return after;
}

TEST_P(OptimizerContract, ThreadsChangeNoBit) {
  const AfterSteps one = large_steps(GetParam(), 1), three = large_steps(GetParam(), 3);
  for (size_t i = 0; i < one.weights.size(); ++i) EXPECT_TRUE(at::equal(one.weights[i], three.weights[i]));
  for (size_t i = 0; i < one.state.size(); ++i)
    EXPECT_TRUE(at::equal(one.state[i].second, three.state[i].second)) << one.state[i].first;
  for (size_t i = 0; i < one.last.size(); ++i) EXPECT_EQ(one.last[i].update_norm, three.last[i].update_norm);
}

TEST_P(OptimizerContract, NormsChangeNoBitAndAreNaNWhereNoneAreTaken) {
  const auto parameters = [] {
    return std::vector<ParameterInfo>{
        make_parameter("conv.weight", ParameterKind::weight, std::vector<double>(300, 0.75)),
        make_parameter("conv.bias", ParameterKind::bias, {0.5, -1})};
  };
  const auto with = parameters(), without = parameters();
  const auto measured = make_test_optimizer(GetParam(), {}, with),
             plain = make_test_optimizer(GetParam(), {}, without);
  plain->take_norms(false);
  run(*measured, with, 0, 3);
  run(*plain, without, 0, 3);
  const NamedTensors state = measured->state(), expected = plain->state();
  for (size_t i = 0; i < state.size(); ++i)
    EXPECT_TRUE(at::equal(state[i].second, expected[i].second)) << state[i].first;
  for (size_t i = 0; i < with.size(); ++i) {
    EXPECT_TRUE(at::equal(with[i].tensor, without[i].tensor)) << with[i].name;
    const ParameterStep& step = plain->last_step()[i];
    for (const double value : {step.weight_norm, step.gradient_norm, step.update_norm, step.trust_ratio})
      EXPECT_TRUE(std::isnan(value));
    EXPECT_GT(measured->last_step()[i].weight_norm, 0);
  }
  plain->take_norms(true);
  run(*plain, without, 3, 4);
  EXPECT_GT(plain->last_step()[0].update_norm, 0);
}

// Norms of a tensor that is cut in pieces, against torch's of the whole. Sums of 2e5 squares: 1e-13 by
// rounding.
TEST_P(OptimizerContract, NormsAreThoseOfTheWholeTensor) {
  at::Generator generator = make_generator(12);
  const at::Tensor values = at::empty({3 * 65536 + 301}, at::kDouble).normal_(0, 1, generator);
  const std::vector<ParameterInfo> parameters{
      {"fc.weight", "fc", ParameterKind::weight, values.requires_grad_(true)}};
  const auto optimizer = make_test_optimizer(GetParam(), {}, parameters);
  run(*optimizer, parameters, 0, 1);
  const at::Tensor before = values.detach().clone();
  run(*optimizer, parameters, 1, 2);
  const ParameterStep& step = optimizer->last_step()[0];
  const auto agrees = [](double found, const at::Tensor& tensor) {
    const double expected = at::linalg_vector_norm(tensor.detach(), 2).item<double>();
    EXPECT_NEAR(found, expected, 1e-12 * expected);
  };
  agrees(step.weight_norm, before);
  agrees(step.gradient_norm, values.grad());
  // A difference of numbers of order 1 that is rounded once more: 1e-16 of the weights, which the update
  // isn't smaller than by 1e4.
  EXPECT_NEAR(step.update_norm, at::linalg_vector_norm(values.detach() - before, 2).item<double>(),
              1e-10 * step.update_norm);
}

// L = 1/2 sum_j a_j (w_j - c_j)^2: whoever follows -g with a falling rate ends near c.
TEST_P(OptimizerContract, FindsTheMinimumOfAQuadratic) {
  const std::vector<double> curvature{1, 3, 0.5}, minimum{1, -2, 0.5};
  const std::vector<ParameterInfo> parameters{make_parameter("fc.weight", ParameterKind::weight, {2, 1, -1})};
  const auto optimizer = make_test_optimizer(GetParam(), entry().undecayed, parameters);
  const int steps = 2000;
  for (int step = 0; step < steps; ++step) {
    optimizer->go_to_gradient_point();
    auto gradient = values_of(parameters[0].tensor);
    for (size_t j = 0; j < 3; ++j) gradient[j] = curvature[j] * (gradient[j] - minimum[j]);
    set_gradient(parameters[0], gradient);
    optimizer->set_learning_rate(0.05 * (1 - static_cast<double>(step) / steps));
    optimizer->step();
  }
  // The rate of the last update is 2.5e-5: with normalised updates of norm up to 3 it rings at about 1e-3.
  const auto end = values_of(parameters[0].tensor);
  for (size_t j = 0; j < 3; ++j) EXPECT_NEAR(end[j], minimum[j], 2e-3);
}

// The loss of a closure comes back, and torch's own parameter list is ours.
TEST_P(OptimizerContract, IsATorchOptimizer) {
  const auto parameters = two_layers();
  const std::unique_ptr<torch::optim::Optimizer> optimizer = make_test_optimizer(GetParam(), {}, parameters);
  optimizer->param_groups()[0].options().set_lr(0.1);
  EXPECT_EQ(static_cast<Optimizer&>(*optimizer).learning_rate(), 0.1);
  const at::Tensor before = parameters[0].tensor.detach().clone();
  const at::Tensor loss = optimizer->step([&] {
    optimizer->zero_grad();
    at::Tensor value = parameters[0].tensor.square().sum();
    value.backward();
    return value;
  });
  EXPECT_NEAR(loss.item<double>(), before.square().sum().item<double>(), 1e-4);
  EXPECT_FALSE(at::equal(parameters[0].tensor, before));
}

TEST(Norm, SumsInFloat64WhateverTypeAndFormat) {
  at::Generator generator = make_generator(3);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{}, {0}, {5}, {7, 3, 3, 3}, {300, 700}}) {
    const at::Tensor x = at::empty(sizes, at::kFloat).normal_(0, 1, generator);
    // Reference: 80-bit sum over the values.
    long double squares = 0;
    for (double value : values_of(x)) squares += static_cast<long double>(value) * value;
    const double expected = static_cast<double>(std::sqrt(squares));
    EXPECT_NEAR(norm_of(x), expected, 1e-13 * expected);
    EXPECT_NEAR(norm_of(x.to(at::kDouble)), expected, 1e-13 * expected);
    if (x.dim() == 4) {
      EXPECT_NEAR(norm_of(x.contiguous(at::MemoryFormat::ChannelsLast)), expected, 1e-13 * expected);
    }
    if (x.dim() == 2) {
      EXPECT_NEAR(norm_of(x.t()), expected, 1e-13 * expected);
      const at::Tensor gaps = x.slice(1, 0, 700, 2);
      EXPECT_NEAR(norm_of(gaps), norm_by_hand(values_of(gaps)), 1e-12 * expected);
    }
  }
  // Squares that float32 cannot hold.
  EXPECT_NEAR(norm_of(at::full({4}, 1e30, at::kFloat)) / 2e30, 1, 1e-6);
  EXPECT_TRUE(std::isnan(norm_of(at::full({4}, NAN, at::kFloat))));
}

}  // namespace
}  // namespace basin
