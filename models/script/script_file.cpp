#include "models/script/script_file.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/serialization/import.h>

#include "core/error.h"
#include "core/hash.h"

namespace basin {
namespace {

/// Operations that draw, but where they have such an argument and it is 0: its name.
const std::map<std::string, std::string>& drawing_operations() {
  static const std::map<std::string, std::string> known = [] {
    std::map<std::string, std::string> all;
    for (const char* name :
         {"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout",
          "bernoulli", "rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm",
          "multinomial", "uniform", "normal", "exponential", "rrelu"})
      all[std::string("aten::") + name] = all[std::string("aten::") + name + "_"] = "";
    for (const char* name : {"lstm", "gru", "rnn_tanh", "rnn_relu"})
      all[std::string("aten::") + name] = "dropout";
    all["aten::scaled_dot_product_attention"] = "dropout_p";
    return all;
  }();
  return known;
}

bool draws(const torch::jit::Node& node) {
  const auto found = drawing_operations().find(node.kind().toQualString());
  if (found == drawing_operations().end()) return false;
  if (found->second.empty() || !node.hasNamedInput(found->second)) return true;
  const auto share = torch::jit::toIValue(node.namedInput(found->second));
  return !share || !share->isDouble() || share->toDouble() != 0;
}

bool draws(const torch::jit::Block& block) {
  for (const torch::jit::Node* node : block.nodes()) {
    if (draws(*node)) return true;
    for (const torch::jit::Block* inner : node->blocks())
      if (draws(*inner)) return true;
  }
  return false;
}

bool draws(const torch::jit::Module& module) {
  for (const torch::jit::Method& method : module.get_methods()) {
    const std::shared_ptr<torch::jit::Graph> graph = method.graph()->copy();
    torch::jit::Inline(*graph);
    if (draws(*graph->block())) return true;
  }
  return false;
}

bool batch_statistics(const torch::jit::Module& module) {
  for (const torch::jit::Module& part : module.modules())
    if (has_running_statistics(part)) return true;
  return false;
}

}  // namespace

torch::jit::Module load_script(const std::string& file, const std::string& sha256) {
  const std::string where = fmt::format("torchscript.file = \"{}\"", file);
  if (file.empty())
    throw ConfigError("torchscript.file is empty: the network's file, as basin.export() writes it");
  if (!std::filesystem::is_regular_file(file)) throw ConfigError(where + ": no such file");
  if (const std::string found = sha256_of_file(file); !sha256.empty() && found != sha256)
    throw ConfigError(fmt::format("{}: another network: its SHA-256 is {}, torchscript.sha256 is {}", where,
                                  found, sha256));
  try {
    return torch::jit::load(file, at::Device(at::kCPU));
  } catch (const std::exception& error) {
    throw ConfigError(
        fmt::format("{}: not a TorchScript file that this torch can load ({}); basin.export() writes one",
                    where, script_fault(error)));
  }
}

ModelTraits script_traits(const std::string& file, const std::string& sha256) {
  static std::map<std::string, ModelTraits> known;
  const auto found = known.find(sha256);
  if (found != known.end() && !sha256.empty()) return found->second;
  const torch::jit::Module module = load_script(file, sha256);
  return known[sha256] = {.batch_statistics = batch_statistics(module), .dropout = draws(module)};
}

std::string script_fault(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
  // The interpreter's traceback ends in the fault itself: "RuntimeError: mat1 and mat2 shapes cannot be multiplied".
  const size_t fault = text.rfind("Error: ");
  const std::string last = fault == std::string::npos ? text : text.substr(fault + 7);
  return last.substr(0, last.find('\n'));
}

bool has_running_statistics(const torch::jit::Module& module) {
  return module.hasattr("running_mean") && module.attr("running_mean").isTensor() &&
         module.hasattr("running_var") && module.attr("running_var").isTensor();
}

}  // namespace basin
