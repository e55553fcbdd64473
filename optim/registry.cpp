#include "optim/registry.h"

#include "optim/adam.h"
#include "optim/lamb.h"
#include "optim/lars.h"
#include "optim/lbfgs.h"
#include "optim/sgd.h"

namespace basin {

namespace {

template <class T, class O>
std::unique_ptr<Optimizer> make(std::vector<ParameterInfo> parameters, const AnyOptions& options) {
  return std::make_unique<T>(std::move(parameters), options_as<O>(options));
}

}  // namespace

const std::vector<OptimizerEntry>& optimizer_registry() {
  static const std::vector<OptimizerEntry> table{
      {"sgd", "Gradient descent with momentum or Nesterov momentum.", make_options<SgdOptions>,
       make<Sgd, SgdOptions>},
      {"adam", "Adam, weight decay in the gradient.", make_options<AdamOptions>, make<Adam, AdamOptions>},
      {"adamw", "Adam with decoupled weight decay.", make_options<AdamWOptions>, make<Adam, AdamWOptions>},
      {"lars", "Layer-wise adaptive rate scaling (You et al. 2017); biases and norms excluded by default.",
       make_options<LarsOptions>, make<Lars, LarsOptions>},
      {"larc", "LARS with a local rate of at most the learning rate, as in apex.", make_options<LarcOptions>,
       make<Lars, LarcOptions>},
      {"lamb", "Layer-wise adaptive moments (You et al. 2019); biases and norms excluded by default.",
       make_options<LambOptions>, make<Lamb, LambOptions>},
      {"lambc", "LAMB with trust ratios of at most 1, as in timm.", make_options<LambcOptions>,
       make<Lamb, LambcOptions>},
      {"lbfgs", "Multi-batch L-BFGS with overlapping batches (Berahas et al. 2016).",
       make_options<LbfgsOptions>, make<Lbfgs, LbfgsOptions>},
  };
  return table;
}

}  // namespace basin
