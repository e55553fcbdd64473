// Steps normalised by other gradients than their direction is of: by hand from the formulas, and where both are the same.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/nearest.h"
#include "core/seed.h"
#include "tests/optim/optim_support.h"

namespace basin {
namespace {

using namespace testing;

struct CleanCase {
  std::string name;
  std::vector<std::string> settings;
};

std::ostream& operator<<(std::ostream& out, const CleanCase& c) {
  return out << fmt::format("{} {}", c.name, fmt::join(c.settings, " "));
}

/// Methods that take none.
const std::vector<std::string> kWithoutClean{"lbfgs",
                                             "lion",
                                             "signsgd",
                                             "muon",
                                             "adafactor",
                                             "shampoo",
                                             "soap",
                                             "schedule_free_sgd",
                                             "schedule_free_adamw"};

/// Every method that takes them, and every way in which a gradient comes into what normalises a step.
std::vector<CleanCase> cases() {
  std::vector<CleanCase> all{
      {"lars", {"denominator=momentum", "rate_in=step", "ratio_in=step"}},
      {"lars", {"denominator=momentum", "rate_in=step", "ratio_in=step", "buffer_start=gradient"}},
      {"lars", {"denominator=decayed_gradient", "zero_norm=any", "zero_norm_drops_decay=false"}},
      {"lars", {"max_element=0.2", "momentum=0"}},
      {"lars", {"trust=mean"}},
      {"adam", {"weight_decay=0.1"}},
      {"lamb", {"max_gradient_norm=0.5"}},
      {"lamb", {"normalise_gradient=true", "decay=gradient"}},
      {"lamb", {"bias_correction=none", "trust=shuffled", "exclude_from_trust=[]"}}};
  for (const OptimizerEntry& entry : optimizer_registry())
    if (!contains(kWithoutClean, entry.name)) all.push_back({entry.name, {}});
  return all;
}

class CleanGradients : public ::testing::TestWithParam<CleanCase> {};
INSTANTIATE_TEST_SUITE_P(Methods, CleanGradients, ::testing::ValuesIn(cases()));

std::vector<ParameterInfo> parameters_of(at::ScalarType dtype) {
  at::Generator generator = make_generator(7);
  const auto leaf = [&](std::vector<int64_t> sizes) {
    return at::empty(sizes, at::kFloat).normal_(0, 1, generator).to(dtype);
  };
  return {{"conv1.weight", "conv1", ParameterKind::weight,
           leaf({4, 3, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_(true)},
          {"conv1.bias", "conv1", ParameterKind::bias, leaf({4}).requires_grad_(true)},
          {"fc.weight", "fc", ParameterKind::weight, leaf({5, 6}).requires_grad_(true)}};
}

std::vector<at::Tensor> drawn(const std::vector<ParameterInfo>& parameters, uint64_t number) {
  at::Generator generator = make_generator(number);
  std::vector<at::Tensor> result;
  for (const ParameterInfo& p : parameters)
    result.push_back(at::empty(p.tensor.sizes(), at::kFloat).normal_(0, 0.3, generator).to(p.tensor.dtype()));
  return result;
}

void set_gradients(const std::vector<ParameterInfo>& parameters, const std::vector<at::Tensor>& gradients) {
  for (size_t i = 0; i < parameters.size(); ++i)
    at::Tensor(parameters[i].tensor).mutable_grad() = gradients[i];
}

/// Steps `first` to `last` - 1; noise 0: the clean gradients are the gradients.
void run(Optimizer& optimizer, const std::vector<ParameterInfo>& parameters, uint64_t first, uint64_t last,
         double noise) {
  for (uint64_t step = first; step < last; ++step) {
    const std::vector<at::Tensor> clean = drawn(parameters, 100 + step);
    std::vector<at::Tensor> noisy = drawn(parameters, 200 + step);
    for (size_t i = 0; i < noisy.size(); ++i) noisy[i] = clean[i] + noise * noisy[i];
    set_gradients(parameters, noisy);
    optimizer.set_learning_rate(0.01 * static_cast<double>(step + 1));
    optimizer.set_clean_gradients(clean);
    optimizer.step();
  }
}

bool is_twin(const std::string& name) { return name.rfind("clean_", 0) == 0; }

TEST_P(CleanGradients, ThatAreTheGradientsChangeNoBit) {
  const auto& [name, settings] = GetParam();
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const auto with = parameters_of(dtype), without = parameters_of(dtype);
    const auto split = make_test_optimizer(name, settings, with),
               plain = make_test_optimizer(name, settings, without);
    for (uint64_t step = 0; step < 4; ++step) {
      run(*split, with, step, step + 1, 0);
      set_gradients(without, drawn(without, 100 + step));
      plain->set_learning_rate(0.01 * static_cast<double>(step + 1));
      plain->step();
      for (size_t i = 0; i < with.size(); ++i) {
        EXPECT_TRUE(at::equal(with[i].tensor, without[i].tensor)) << with[i].name << step;
        const ParameterStep &a = split->last_step()[i], &b = plain->last_step()[i];
        EXPECT_EQ(a.gradient_norm, b.gradient_norm);
        EXPECT_EQ(a.update_norm, b.update_norm);
        EXPECT_EQ(fmt::format("{}", a.trust_ratio), fmt::format("{}", b.trust_ratio));
      }
    }
    NamedTensors state = split->state();
    std::erase_if(state, [](const auto& entry) { return is_twin(entry.first); });
    const NamedTensors expected = plain->state();
    ASSERT_EQ(state.size(), expected.size());
    for (size_t i = 0; i < state.size(); ++i) EXPECT_TRUE(at::equal(state[i].second, expected[i].second));
  }
}

TEST_P(CleanGradients, StateRoundTripContinuesBitEqual) {
  const auto& [name, settings] = GetParam();
  const auto parameters = parameters_of(at::kFloat);
  const auto optimizer = make_test_optimizer(name, settings, parameters);
  run(*optimizer, parameters, 0, 3, 2);
  auto others = parameters;
  for (ParameterInfo& p : others) p.tensor = p.tensor.detach().clone().requires_grad_(true);
  const auto resumed = make_test_optimizer(name, settings, others);
  resumed->load_state(optimizer->state());
  run(*optimizer, parameters, 3, 6, 2);
  run(*resumed, others, 3, 6, 2);
  for (size_t i = 0; i < parameters.size(); ++i)
    EXPECT_TRUE(at::equal(parameters[i].tensor, others[i].tensor)) << parameters[i].name;
}

/// By the formulas of docs/optimizers.md alone, in float64, on whole tensors: three updates of two tensors of weights.
struct ByHand {
  double decay = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  std::vector<at::Tensor> w, m, m_clean, v;

  explicit ByHand(const std::vector<ParameterInfo>& parameters) {
    for (const ParameterInfo& p : parameters) {
      w.push_back(p.tensor.detach().clone());
      for (auto* list : {&m, &m_clean, &v}) list->push_back(at::zeros_like(w.back()));
    }
  }
  void advance(size_t i, const at::Tensor& noisy, const at::Tensor& clean) {
    m[i] = beta1 * m[i] + (1 - beta1) * noisy;
    m_clean[i] = beta1 * m_clean[i] + (1 - beta1) * clean;
    v[i] = beta2 * v[i] + (1 - beta2) * clean * clean;
  }
  at::Tensor direction(const at::Tensor& moment, size_t i, int t) const {
    return moment / (1 - std::pow(beta1, t)) / ((v[i] / (1 - std::pow(beta2, t))).sqrt() + eps);
  }
};

std::vector<ParameterInfo> two_weights() {
  std::vector<ParameterInfo> all = parameters_of(at::kDouble);
  return {all[0], all[2]};
}

/// update(hand, i, noisy, clean, rate, t) for each tensor, and the method's own steps to compare with.
template <class Update>
void follow(const std::string& name, const std::vector<std::string>& settings, ByHand hand,
            const Update& update) {
  const auto parameters = two_weights();
  const auto optimizer = make_test_optimizer(name, settings, parameters);
  for (int t = 1; t <= 3; ++t) {
    const std::vector<at::Tensor> clean = drawn(parameters, static_cast<uint64_t>(t));
    std::vector<at::Tensor> noisy = drawn(parameters, static_cast<uint64_t>(50 + t));
    for (size_t i = 0; i < noisy.size(); ++i) noisy[i] = clean[i] + 3 * noisy[i];
    set_gradients(parameters, noisy);
    const double rate = 0.02 * t;
    optimizer->set_learning_rate(rate);
    optimizer->set_clean_gradients(clean);
    optimizer->step();
    for (size_t i = 0; i < parameters.size(); ++i) {
      update(hand, i, noisy, clean, rate, t);
      // Rounding of the same formula in another order, and of the ratio's sums of a hundred squares.
      EXPECT_TRUE(at::allclose(parameters[i].tensor.detach(), hand.w[i], 1e-12, 1e-14)) << name << t;
    }
  }
}

using Tensors = std::vector<at::Tensor>;

TEST(CleanGradientsByHand, AdamTakesItsSecondMomentFromThem) {
  ByHand hand(two_weights());
  follow("adam", {}, hand,
         [](ByHand& h, size_t i, const Tensors& noisy, const Tensors& clean, double rate, int t) {
           h.advance(i, noisy[i], clean[i]);
           h.w[i] = h.w[i] - rate * h.direction(h.m[i], i, t);
         });
  hand.decay = 0.1;
  follow("adam", {"weight_decay=0.1"}, hand,
         [](ByHand& h, size_t i, const Tensors& noisy, const Tensors& clean, double rate, int t) {
           h.advance(i, noisy[i] + h.decay * h.w[i], clean[i] + h.decay * h.w[i]);
           h.w[i] = h.w[i] - rate * h.direction(h.m[i], i, t);
         });
  follow("adamw", {"weight_decay=0.1"}, hand,
         [](ByHand& h, size_t i, const Tensors& noisy, const Tensors& clean, double rate, int t) {
           h.advance(i, noisy[i], clean[i]);
           h.w[i] = h.w[i] - rate * (h.direction(h.m[i], i, t) + h.decay * h.w[i]);
         });
}

TEST(CleanGradientsByHand, LambTakesItsRatioFromTheStepWithoutNoise) {
  ByHand hand(two_weights());
  hand.eps = 1e-6;
  hand.decay = 0.1;
  for (const bool clipped : {false, true}) {
    std::vector<std::string> settings{"weight_decay=0.1"};
    if (clipped) settings.emplace_back("max_gradient_norm=0.5");
    follow("lamb", settings, hand,
           [&](ByHand& h, size_t i, const Tensors& noisy, const Tensors& clean, double rate, int t) {
             const double norm =
                 std::sqrt((clean[0].square().sum() + clean[1].square().sum()).item<double>());
             const double factor = clipped ? std::min(1.0, 0.5 / norm) : 1;
             h.advance(i, factor * noisy[i], factor * clean[i]);
             const at::Tensor clean_u = h.direction(h.m_clean[i], i, t) + h.decay * h.w[i];
             const at::Tensor u = h.direction(h.m[i], i, t) + h.decay * h.w[i];
             h.w[i] = h.w[i] - rate * (h.w[i].norm() / clean_u.norm()) * u;
           });
  }
}

TEST(CleanGradientsByHand, LarsTakesItsRatioFromTheirNorm) {
  ByHand hand(two_weights());
  hand.decay = 0.1;
  const auto step = [](ByHand& h, size_t i, const at::Tensor& noisy, const at::Tensor& below, double rate) {
    h.m[i] = 0.9 * h.m[i] + rate * 0.001 * h.w[i].norm() / below * (noisy + h.decay * h.w[i]);
    h.w[i] = h.w[i] - h.m[i];
  };
  follow("lars", {"weight_decay=0.1"}, hand,
         [&](ByHand& h, size_t i, const Tensors& noisy, const Tensors& clean, double rate, int) {
           step(h, i, noisy[i], clean[i].norm() + h.decay * h.w[i].norm(), rate);
         });
  follow("lars", {"weight_decay=0.1", "denominator=decayed_gradient"}, hand,
         [&](ByHand& h, size_t i, const Tensors& noisy, const Tensors& clean, double rate, int) {
           step(h, i, noisy[i], (clean[i] + h.decay * h.w[i]).norm(), rate);
         });
  follow("lars", {"weight_decay=0.1", "denominator=momentum", "rate_in=step", "ratio_in=step"}, hand,
         [](ByHand& h, size_t i, const Tensors& noisy, const Tensors& clean, double rate, int) {
           h.m[i] = 0.9 * h.m[i] + noisy[i] + h.decay * h.w[i];
           h.m_clean[i] = 0.9 * h.m_clean[i] + clean[i] + h.decay * h.w[i];
           h.w[i] = h.w[i] - rate * 0.001 * h.w[i].norm() / h.m_clean[i].norm() * h.m[i];
         });
}

TEST(CleanGradientsByHand, SgdHasNothingToTakeFromThem) {
  follow("sgd", {}, ByHand(two_weights()),
         [](ByHand& h, size_t i, const Tensors& noisy, const Tensors&, double rate, int) {
           h.m[i] = 0.9 * h.m[i] + noisy[i];
           h.w[i] = h.w[i] - rate * h.m[i];
         });
}

std::vector<std::string> twins(const Optimizer& optimizer) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : optimizer.state())
    if (is_twin(name)) names.push_back(name);
  return names;
}

// A run that begins with noise half-way has the moment that it had until then; one that ends with it keeps nothing stale.
TEST(CleanGradientsByHand, TheTwinOfAMomentBeginsAsTheMomentAndEndsWithThem) {
  const auto parameters = two_weights();
  const auto optimizer = make_test_optimizer("lamb", {}, parameters);
  set_gradients(parameters, drawn(parameters, 1));
  optimizer->step();
  EXPECT_TRUE(twins(*optimizer).empty());
  const at::Tensor before = optimizer->state()[1].second;
  run(*optimizer, parameters, 0, 1, 2);
  ASSERT_EQ(twins(*optimizer),
            (std::vector<std::string>{"clean_first_moment/conv1.weight", "clean_first_moment/fc.weight"}));
  const at::Tensor twin = optimizer->state()[5].second;
  EXPECT_TRUE(at::allclose(twin, 0.9 * before + 0.1 * drawn(parameters, 100)[0], 1e-14, 1e-16));
  set_gradients(parameters, drawn(parameters, 1));
  optimizer->step();
  EXPECT_TRUE(twins(*optimizer).empty());
}

// P is that of a step without noise, from the twin.
TEST(CleanGradientsByHand, LambsPreconditionerHasTheCleanRatio) {
  const auto parameters = two_weights();
  const auto optimizer = make_test_optimizer("lamb", {"weight_decay=0"}, parameters);
  run(*optimizer, parameters, 0, 3, 2);
  std::map<std::string, at::Tensor> state;
  for (const auto& [name, tensor] : optimizer->state()) state[name] = tensor;
  const std::vector<at::Tensor> p = optimizer->preconditioner(drawn(parameters, 1));
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name;
    const at::Tensor below = (state["second_moment/" + name] / (1 - std::pow(0.999, 3))).sqrt() + 1e-6;
    const at::Tensor u = state["clean_first_moment/" + name] / (1 - std::pow(0.9, 3)) / below;
    EXPECT_TRUE(at::allclose(p[i], below * (u.norm() / parameters[i].tensor.norm()), 1e-12));
  }
}

// Their direction and what normalises it are one thing: a Hessian, a sign.
TEST(CleanGradientsByHand, SomeMethodsTakeNone) {
  for (const std::string& name : kWithoutClean) {
    const auto parameters = two_weights();
    const auto optimizer = make_test_optimizer(name, {}, parameters);
    EXPECT_FALSE(optimizer->takes_clean_gradients()) << name;
    EXPECT_THROW(optimizer->set_clean_gradients(drawn(parameters, 1)), c10::Error) << name;
  }
}

}  // namespace
}  // namespace basin
