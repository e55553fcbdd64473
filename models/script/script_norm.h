// defines: ScriptNorm, a batch norm inside a script; run_script().
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/api/module.h>

#include <vector>

namespace basin {

/// The module's forward pass with the JIT's graph optimiser off.
torch::jit::IValue run_script(torch::jit::Module& module, const at::Tensor& inputs);

/// A module whose forward pass in training mode normalises by its batch and moves its running statistics a part `momentum` of the way
/// to the batch's mean and unbiased variance. Which part is found by trial: scripts keep it in their code.
class ScriptNorm {
 public:
  explicit ScriptNorm(torch::jit::Module module) : module_(std::move(module)) {}

  at::Tensor mean() const { return module_.attr("running_mean").toTensor(); }
  at::Tensor variance() const { return module_.attr("running_var").toTensor(); }
  void put_statistics(const at::Tensor& mean, const at::Tensor& variance);
  /// Statistics of all elements `value`, and none counted so far.
  void fill_statistics(double value);
  void by_batch(bool batch) { module_.setattr("training", batch); }
  bool is(const torch::jit::Module& module) const { return module_ == module; }

 private:
  torch::jit::Module module_;
};

std::vector<ScriptNorm> norms_of(const torch::jit::Module& module);

}  // namespace basin
