#include "optim/registry.h"

#include "optim/adamw.h"
#include "optim/lamb.h"
#include "optim/lars.h"
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
      {"adamw", "Adam with decoupled weight decay.", make_options<AdamWOptions>, make<AdamW, AdamWOptions>},
      {"lars", "Layer-wise adaptive rate scaling (You et al. 2017); biases and norms excluded unless told.",
       make_options<LarsOptions>, make<Lars, LarsOptions>},
      {"lamb", "Layer-wise adaptive moments (You et al. 2019); biases and norms excluded unless told.",
       make_options<LambOptions>, make<Lamb, LambOptions>},
  };
  return table;
}

}  // namespace basin
