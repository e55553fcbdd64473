// defines: try_script(), what a script must be able to do, and what is learned from trying.
#pragma once

#include <string>
#include <vector>

#include "models/model.h"
#include "models/script/script_norm.h"

namespace basin {

struct ScriptFindings {
  std::vector<double> momenta{};  // of norms_of(), in their order
  std::vector<std::string>
      cancelled{};  // names of the parameters that a batch norm subtracts again (Model::is_cancelled)
};

/// Runs the module on a few random inputs of the shape and puts everything back. ConfigError that begins with `where` for what TorchScript
/// (models/script/torchscript.h) refuses.
ScriptFindings try_script(const torch::jit::Module& module, const InputShape& shape,
                          const std::string& where);

/// The outputs [n, ...] of what a script returned, `output` each; ConfigError that begins with `where` for anything else.
at::Tensor script_logits(const torch::jit::IValue& returned, int64_t n, const std::vector<int64_t>& output,
                         const std::string& where);

}  // namespace basin
