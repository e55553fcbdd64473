#include "tests/support/script_nets.h"

#include <torch/csrc/jit/api/module.h>

#include "core/seed.h"
#include "models/symmetries.h"
#include "tests/support/tiny_models.h"

namespace basin::testing {
namespace {

using torch::jit::Module;

at::Tensor normal(at::IntArrayRef sizes, uint64_t seed) {
  at::Generator generator = make_generator(seed);
  return at::empty(sizes, at::kFloat).normal_(0, 0.3, generator).requires_grad_();
}

void add(Module& module, const std::string& name, const at::Tensor& tensor) {
  module.register_parameter(name, tensor, /*is_buffer=*/false);
}

/// A module of that class with weight and bias.
Module layer(const std::string& type, at::IntArrayRef weight, const std::string& forward) {
  Module module("__torch__." + type);
  add(module, "weight", normal(weight, 1));
  add(module, "bias", normal({weight[0]}, 2));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define("def forward(self, x: Tensor) -> Tensor:\n  " + forward + "\n");
  return module;
}

Module convolution(int64_t in, int64_t out) {
  return layer("Conv2d", {out, in, 3, 3}, "return torch.conv2d(x, self.weight, self.bias, [1, 1], [1, 1])");
}

}  // namespace

Module batch_norm_script(int64_t channels, double momentum) {
  Module module("__torch__.BatchNorm2d");
  add(module, "weight", at::ones({channels}).requires_grad_());
  add(module, "bias", at::zeros({channels}).requires_grad_());
  module.register_buffer("running_mean", at::zeros({channels}));
  module.register_buffer("running_var", at::ones({channels}));
  module.register_buffer("num_batches_tracked", at::zeros({}, at::kLong));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(fmt::format(R"(
def forward(self, x: Tensor) -> Tensor:
  return torch.batch_norm(x, self.weight, self.bias, self.running_mean, self.running_var, self.training, {:.3f}, 1e-5, False)
)",
                            momentum));
  return module;
}

void write_script(const std::string& path, const std::string& body, const NamedTensors& parameters,
                  const std::vector<std::pair<std::string, Module>>& parts) {
  Module module("__torch__.Net");
  for (const auto& [name, tensor] : parameters) add(module, name, tensor);
  for (const auto& [name, part] : parts) module.register_module(name, part);
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define("def forward(self, x: Tensor):\n  " + body + "\n");
  module.save(path);
}

void write_script(const std::string& path, const std::string& body) {
  write_script(path, body, {{"w", normal({3, 128}, 1)}, {"b", normal({3}, 2)}});
}

void write_small_cnn_script(const std::string& path, double momentum) {
  Module net("__torch__.SmallCnn");
  net.register_attribute("training", c10::BoolType::get(), true);
  net.register_module("conv1", convolution(2, 3));
  net.register_module("norm1", batch_norm_script(3, momentum));
  net.register_module("conv2", convolution(3, 4));
  net.register_module("norm2", batch_norm_script(4, momentum));
  net.register_module("fc", layer("Linear", {3, 16}, "return torch.linear(x, self.weight, self.bias)"));
  net.define(R"(
def forward(self, x: Tensor) -> Tensor:
  x = torch.max_pool2d(torch.softplus(self.norm1.forward(self.conv1.forward(x))), [2, 2])
  x = torch.max_pool2d(torch.softplus(self.norm2.forward(self.conv2.forward(x))), [2, 2])
  return self.fc.forward(torch.flatten(x, 1))
)");
  net.save(path);
}

std::shared_ptr<Model> script_model(const std::string& path, const std::vector<std::string>& settings,
                                    uint64_t seed, at::ScalarType dtype) {
  std::vector<std::string> all{"file=" + path};
  all.insert(all.end(), settings.begin(), settings.end());
  return make_test_model("torchscript", all, tiny_image_shape(), seed, dtype);
}

void copy_tensors(const Model& from, Model& to) {
  const at::NoGradGuard no_grad;
  const NamedTensors given = named_tensors(from);
  for (auto& [name, tensor] : named_tensors(to)) {
    const auto same = [&](const auto& one) { return one.first == name; };
    const auto found = std::find_if(given.begin(), given.end(), same);
    TORCH_CHECK(found != given.end(), "no tensor ", name);
    at::Tensor(tensor).copy_(found->second);
  }
}

}  // namespace basin::testing
