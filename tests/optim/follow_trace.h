// defines: follow_trace(), which steps an optimiser along a golden trace.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "tests/optim/optim_support.h"

namespace basin::testing {

/// Steps with gradients[t][tensor] at rates[t]; after each, weights, trust ratios and norms must be those of steps[t] (a
/// struct with `weights`, all tensors in a row, and `trust_ratios`), and gradients as they were.
template <class Step>
void follow_trace(Optimizer& optimizer, const std::vector<ParameterInfo>& parameters,
                  const std::vector<std::vector<std::vector<double>>>& gradients,
                  const std::vector<double>& rates, const std::vector<Step>& steps, double tolerance) {
  for (size_t t = 0; t < steps.size(); ++t) {
    std::vector<std::vector<double>> before;
    for (size_t i = 0; i < parameters.size(); ++i) {
      set_gradient(parameters[i], gradients[t][i]);
      before.push_back(values_of(parameters[i].tensor));
    }
    optimizer.set_learning_rate(rates[t]);
    optimizer.step();

    size_t k = 0;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto& [name, layer, kind, tensor] = parameters[i];
      auto change = values_of(tensor);
      for (size_t j = 0; j < change.size(); ++j, ++k) {
        EXPECT_NEAR(change[j], steps[t].weights.at(k), tolerance * (1 + std::abs(change[j])))
            << name << ", step " << t << ", element " << j;
        change[j] -= before[i][j];
      }
      const ParameterStep& step = optimizer.last_step()[i];
      const double ratio = steps[t].trust_ratios[i];
      EXPECT_EQ(std::isnan(step.trust_ratio), std::isnan(ratio)) << name << ", step " << t;
      if (!std::isnan(ratio)) {
        EXPECT_NEAR(step.trust_ratio, ratio, 10 * tolerance * (1 + ratio)) << name << ", step " << t;
      }
      EXPECT_NEAR(step.weight_norm, norm_by_hand(before[i]), tolerance * (1 + step.weight_norm));
      EXPECT_NEAR(step.gradient_norm, norm_by_hand(gradients[t][i]), tolerance * (1 + step.gradient_norm));
      EXPECT_NEAR(step.update_norm, norm_by_hand(change), 4 * tolerance * (1 + step.weight_norm));
      EXPECT_EQ(values_of(tensor.grad()),
                values_of(at::tensor(gradients[t][i], at::kDouble).to(tensor.scalar_type())));  // untouched
    }
    EXPECT_EQ(k, steps[t].weights.size());
  }
}

}  // namespace basin::testing
