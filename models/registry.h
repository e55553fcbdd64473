// defines: ModelEntry, the table of models and make_model().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/registry.h"
#include "models/model.h"
#include "models/traits.h"

namespace basin {

/// What a network takes: floating-point [n, C, H, W]; floating-point [n, ...]; integers [n, T] with a label each; whatever the
/// user made it for.
enum class ModelInputs { pictures, numbers, tokens, any };

struct ModelEntry {
  std::string name;
  std::string label;  // in figures and tables
  std::string help;   // one sentence
  /// Settings of a network small enough for dense Hessians of 2 x 8 x 8 images or five tokens, and smooth, for tests that
  /// differentiate by differences: "width=2", "activation=softplus".
  std::vector<std::string> tiny = {};
  /// Settings on top of those, a list for each kind of network that its options make: whatever holds for every model is
  /// tried with one after the other. None: as it is.
  std::vector<std::vector<std::string>> variants = {};
  /// On top of those, too: what makes the activations ReLUs. None where they are anyway, or there are none.
  std::vector<std::string> rectified = {};
  ModelInputs inputs = ModelInputs::pictures;
  bool needs_file = false;  // the network is what a file of the user's says; without one there is none
  std::unique_ptr<AnyOptions> (*make_options)() = nullptr;
  std::shared_ptr<Model> (*make)(const AnyOptions& options, const InputShape& shape,
                                 at::Generator& init) = nullptr;
  std::function<ModelTraits(const AnyOptions&)> traits = {};
};

/// The entry of a class M, made from options O, a shape and a generator.
template <class M, class O>
ModelEntry model_entry(ModelEntry entry, ModelTraits (*traits)(const O&)) {
  entry.make_options = basin::make_options<O>;
  entry.make = [](const AnyOptions& options, const InputShape& shape,
                  at::Generator& init) -> std::shared_ptr<Model> {
    return std::make_shared<M>(options_as<O>(options), shape, init);
  };
  entry.traits = [traits](const AnyOptions& options) { return traits(options_as<O>(options)); };
  return entry;
}

/// ConfigError that names both where the entry's network doesn't take inputs of that shape.
void check_inputs(const ModelEntry& entry, const InputShape& shape, const std::string& data_set);

/// In the order of lists and figures. A new model is one file and one line in registry.cpp.
const std::vector<ModelEntry>& model_registry();

/// `master_seed` feeds the streams "init" and "dropout". Parameters come as `dtype`, on `device`, conv
/// weights channels-last.
std::shared_ptr<Model> make_model(const std::string& name, const AnyOptions& options, const InputShape& shape,
                                  uint64_t master_seed, at::ScalarType dtype = at::kFloat,
                                  at::Device device = at::kCPU);

}  // namespace basin
