// defines: networks written as TorchScript, for tests of what is read from a file.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

#include "models/model.h"

namespace basin::testing {

/// Writes a network with these parameters and parts whose forward(self, x) has this body, in TorchScript:
/// "return torch.linear(torch.flatten(x, 1), self.w, self.b)".
void write_script(const std::string& path, const std::string& body, const NamedTensors& parameters,
                  const std::vector<std::pair<std::string, torch::jit::Module>>& parts = {});
/// With w [3, 128] and b [3], normal numbers from a fixed seed: for tiny_image_shape().
void write_script(const std::string& path, const std::string& body);

/// Writes small_cnn's function at its smallest (ModelEntry::tiny, norm = "batch") for tiny_image_shape(), its modules named and
/// classed as PyTorch's are, with batch norms of this momentum.
void write_small_cnn_script(const std::string& path, double momentum = 0.1);

/// A module BatchNorm2d as PyTorch scripts it.
torch::jit::Module batch_norm_script(int64_t channels, double momentum = 0.1);

/// The model "torchscript" of such a file.
std::shared_ptr<Model> script_model(const std::string& path, const std::vector<std::string>& settings = {},
                                    uint64_t seed = 1, at::ScalarType dtype = at::kDouble);

/// Gives `to` the weights and buffers of `from`, by name.
void copy_tensors(const Model& from, Model& to);

}  // namespace basin::testing
