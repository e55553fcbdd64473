// defines: tiny networks and batches for tests, small enough for dense Hessians and finite differences.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "core/registry.h"
#include "models/loss.h"
#include "models/model.h"

namespace basin::testing {

/// A model of the registry with options in TOML syntax without the group: {"hidden=[5]", "activation=tanh"}.
std::shared_ptr<Model> make_test_model(const std::string& name, const std::vector<std::string>& settings,
                                       const InputShape& shape, uint64_t seed = 1,
                                       at::ScalarType dtype = at::kDouble);

/// Those options alone.
std::unique_ptr<AnyOptions> test_options(const std::string& model, const std::vector<std::string>& settings);

/// The registry's models but for those that need a file.
std::vector<std::string> own_models();

/// What its entry says a model is to be tried with: ModelEntry::variants, or the one without settings.
std::vector<std::vector<std::string>> variants_of(const std::string& model);
/// ModelEntry::rectified.
std::vector<std::string> rectified(const std::string& model);

/// 1 x 3 x 3 images of 3 classes.
InputShape tiny_shape();
/// mlp 9 -> 8 -> 5 -> 3, 143 parameters, for tiny_shape(). Smooth with tanh and softplus.
std::shared_ptr<Model> tiny_mlp(uint64_t seed = 1, at::ScalarType dtype = at::kDouble,
                                const std::string& activation = "tanh");
/// 2 x 8 x 8 images of 3 classes.
InputShape tiny_image_shape();
/// What a model of the registry takes: tiny_image_shape(), or five of three tokens.
InputShape tiny_input_shape(const std::string& model);
/// Cross entropy of what it predicts.
LossKind tiny_loss(const std::string& model);
/// Every model of the registry at its smallest for tiny_input_shape(), and smooth; `extra` settings come last.
std::shared_ptr<Model> tiny_model(const std::string& name, const std::vector<std::string>& extra = {},
                                  uint64_t seed = 1, at::ScalarType dtype = at::kDouble);

struct TinyBatch {
  at::Tensor images, labels;  // [n, C, H, W] standard normal, [n] int64; or both [n, T] int64
};
/// The same values for every dtype.
TinyBatch tiny_batch(const InputShape& shape, int64_t examples, uint64_t seed = 1,
                     at::ScalarType dtype = at::kDouble);

}  // namespace basin::testing
