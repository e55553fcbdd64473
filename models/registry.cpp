#include "models/registry.h"

#include "core/seed.h"

namespace basin {

// One line for each, in the order of lists and figures: NAME_entry() is a function of its own file.
// clang-format off
#define BASIN_MODELS(entry) \
  entry(mlp) \
  entry(small_cnn) \
  entry(keskar_c1) \
  entry(resnet20) \
  entry(davidnet) \
  entry(airbench) \
  entry(gpt) \
  entry(noisy_quadratic) \
  entry(torchscript)
// clang-format on

#define BASIN_DECLARE(name) ModelEntry name##_entry();
BASIN_MODELS(BASIN_DECLARE)

const std::vector<ModelEntry>& model_registry() {
#define BASIN_MAKE(name) name##_entry(),
  static const std::vector<ModelEntry> table{BASIN_MODELS(BASIN_MAKE)};
  return table;
}

void check_inputs(const ModelEntry& entry, const InputShape& shape, const std::string& data_set) {
  if (entry.inputs == ModelInputs::any) return;
  if (entry.inputs == ModelInputs::tokens) {
    if (shape.tokens > 0 && shape.example().size() == 1 && shape.labels == shape.example().front()) return;
    throw ConfigError(
        fmt::format("model = \"{}\" takes tokens, [n, T] integers with a label each, and {} has none",
                    entry.name, data_set));
  }
  if (shape.tokens > 0)
    throw ConfigError(
        fmt::format("model = \"{}\" takes floating-point numbers, and the inputs of {} are integers",
                    entry.name, data_set));
  if (shape.labels > 0)
    throw ConfigError(fmt::format("model = \"{}\" has one output per example, and {} has {} labels for each",
                                  entry.name, data_set, shape.labels));
  if (entry.inputs == ModelInputs::pictures && shape.example().size() != 3)
    throw ConfigError(
        fmt::format("model = \"{}\" takes pictures, [channels, height, width], and an example of {} is [{}]",
                    entry.name, data_set, fmt::join(shape.example(), ", ")));
}

namespace {

// set_data() keeps the tensor objects, which layers and tables share. A network that isn't ours may ask for views of
// activations, which channels-last weights would forbid.
void move(at::Tensor& tensor, at::ScalarType dtype, at::Device device, bool own_layers) {
  const auto format =
      own_layers && tensor.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  tensor.set_data(tensor.detach().to(device, dtype).contiguous(format));
}

}  // namespace

std::shared_ptr<Model> make_model(const std::string& name, const AnyOptions& options, const InputShape& shape,
                                  uint64_t master_seed, at::ScalarType dtype, at::Device device) {
  const ModelEntry& entry = find_entry(model_registry(), name, "model");
  at::Generator init = make_generator(derive_seed(master_seed, "init"));
  std::shared_ptr<Model> model = entry.make(options, shape, init);
  for (ParameterInfo parameter : model->parameter_table())
    move(parameter.tensor, dtype, device, model->has_own_layers());
  for (auto [buffer_name, buffer] : model->buffer_table())
    move(buffer, dtype, device, model->has_own_layers());
  model->seed_dropout(master_seed);
  return model;
}

}  // namespace basin
