// defines: the table of models and make_model().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/registry.h"
#include "models/model.h"

namespace basin {

struct ModelEntry {
  std::string name;
  std::string help;  // one sentence
  std::unique_ptr<AnyOptions> (*make_options)();
  std::shared_ptr<Model> (*make)(const AnyOptions& options, const InputShape& shape, at::Generator& init);
};

/// mlp, small_cnn, keskar_c1, resnet20, davidnet, airbench, noisy_quadratic. A new model is one file and one
/// line here.
const std::vector<ModelEntry>& model_registry();

/// `master_seed` feeds the streams "init" and "dropout". Parameters come as `dtype`, on `device`, conv
/// weights channels-last.
std::shared_ptr<Model> make_model(const std::string& name, const AnyOptions& options, const InputShape& shape,
                                  uint64_t master_seed, at::ScalarType dtype = at::kFloat,
                                  at::Device device = at::kCPU);

}  // namespace basin
