#include "models/script/script_norm.h"

#include <torch/csrc/jit/runtime/graph_executor.h>

#include "models/script/script_file.h"

namespace basin {

torch::jit::IValue run_script(torch::jit::Module& module, const at::Tensor& inputs) {
  const torch::jit::GraphOptimizerEnabledGuard plain(false);
  return module.forward({inputs});
}

void ScriptNorm::put_statistics(const at::Tensor& mean, const at::Tensor& variance) {
  module_.setattr("running_mean", mean);
  module_.setattr("running_var", variance);
}

void ScriptNorm::fill_statistics(double value) {
  const at::NoGradGuard no_grad;
  mean().fill_(value);
  variance().fill_(value);
  // Where there is no momentum, the part is one over the calls counted.
  if (module_.hasattr("num_batches_tracked") && module_.attr("num_batches_tracked").isTensor())
    module_.attr("num_batches_tracked").toTensor().zero_();
}

std::vector<ScriptNorm> norms_of(const torch::jit::Module& module) {
  std::vector<ScriptNorm> norms;
  for (const torch::jit::Module& part : module.modules())
    if (has_running_statistics(part)) norms.emplace_back(part);
  return norms;
}

}  // namespace basin
