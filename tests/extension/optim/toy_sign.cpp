// defines: the optimiser toy_sign, for tests/python/extension/test_extension.py.
#include <ATen/ATen.h>

#include "core/math/tensor_norms.h"
#include "optim/registry.h"

namespace basin {
namespace {

struct ToySignOptions {
  double share = 1;
};

void bind_options(OptionTable& table, ToySignOptions& options) {
  table.add("share", options.share, greater_than(0), "of the learning rate");
}

/// w <- w - lr share sign(g). No state.
class ToySign : public Optimizer {
 public:
  ToySign(std::vector<ParameterInfo> parameters, const ToySignOptions& options)
      : Optimizer(std::move(parameters)), share_(options.share) {}
  double stability_limit() const override { return NAN; }
  std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& gradients) const override {
    std::vector<at::Tensor> p;
    for (const at::Tensor& gradient : gradients) p.push_back(gradient.abs().div(share_));
    return p;
  }

 private:
  void update(TensorLists& lists) override {
    StepReport norms;
    for (size_t i = 0; i < lists.weights.size(); ++i) {
      const at::Tensor change = lists.gradients[i].sign() * (learning_rate() * share_);
      norms.sums.push_back({.weight = squared_norm(lists.weights[i]),
                            .gradient = squared_norm(lists.gradients[i]),
                            .change = squared_norm(change)});
      norms.ratios.push_back(1);
      lists.weights[i].sub_(change);
    }
    report(norms);
  }

  double share_;
};

}  // namespace

OptimizerEntry toy_sign_entry() {
  return optimizer_entry<ToySign, ToySignOptions>(
      {"toy_sign", "Toy sign", "Steps by the gradient's sign, a toy."},
      [](const ToySignOptions&) { return OptimizerTraits{}; });
}

}  // namespace basin
