// defines: BiasFreeRelu and rescale_units(), for measures that ReLU's homogeneity is about.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "models/layers/layer_calls.h"
#include "models/model.h"
#include "tests/support/analytic_models.h"

namespace basin::testing {

/// 9 -> 5 -> 4 -> 3 without biases, ReLU after the first two layers.
class BiasFreeRelu final : public Model {
 public:
  BiasFreeRelu() {
    const std::vector<std::vector<int64_t>> sizes{{5, 9}, {4, 5}, {3, 4}};
    for (size_t i = 0; i < sizes.size(); ++i) {
      weights_.push_back(add_parameter("fc" + std::to_string(i + 1), "weight", ParameterKind::weight,
                                       sine_numbers(sizes[i], 50 * static_cast<double>(i))));
    }
  }
  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = images.flatten(1);
    for (size_t i = 0; i < 2; ++i) x = at::relu(linear_map(x, weights_[i], {}));
    return linear_map(x, weights_[2], {});
  }

 private:
  std::vector<at::Tensor> weights_;
};

/// Unit j of a layer with weight and bias times factors[j], what the next layer's weight takes of it over
/// that: the same function where ReLU stands between.
inline void rescale_units(Model& model, const std::string& layer, const std::string& next,
                          const std::vector<double>& factors) {
  const at::NoGradGuard no_grad;
  const at::Tensor alpha = at::tensor(factors, at::kDouble);
  for (const ParameterInfo& p : model.parameter_table()) {
    at::Tensor tensor = p.tensor;
    if (p.layer == layer) tensor.mul_(tensor.dim() == 2 ? alpha.unsqueeze(1) : alpha);
    if (p.layer == next && p.kind == ParameterKind::weight) tensor.div_(alpha.unsqueeze(0));
  }
}

}  // namespace basin::testing
