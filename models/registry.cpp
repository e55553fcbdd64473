#include "models/registry.h"

#include "core/seed.h"
#include "models/airbench.h"
#include "models/davidnet.h"
#include "models/keskar_c1.h"
#include "models/mlp.h"
#include "models/noisy_quadratic.h"
#include "models/resnet20.h"
#include "models/small_cnn.h"

namespace basin {

namespace {

template <class M, class O>
std::shared_ptr<Model> make(const AnyOptions& options, const InputShape& shape, at::Generator& init) {
  return std::make_shared<M>(options_as<O>(options), shape, init);
}

// set_data() keeps the tensor objects, which layers and tables share.
void move(at::Tensor& tensor, at::ScalarType dtype, at::Device device) {
  const auto format = tensor.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  tensor.set_data(tensor.detach().to(device, dtype).contiguous(format));
}

}  // namespace

const std::vector<ModelEntry>& model_registry() {
  static const std::vector<ModelEntry> table{
      {"mlp", "Fully connected layers.", make_options<MlpOptions>, make<Mlp, MlpOptions>},
      {"small_cnn", "3x3 convolutions, each halving the image, and a linear layer.",
       make_options<SmallCnnOptions>, make<SmallCnn, SmallCnnOptions>},
      {"keskar_c1", "Keskar et al.'s shallow convolutional network C1, with batch norm and dropout.",
       make_options<KeskarC1Options>, make<KeskarC1, KeskarC1Options>},
      {"resnet20", "He et al.'s CIFAR ResNet-20, option-A shortcuts.", make_options<ResNet20Options>,
       make<ResNet20, ResNet20Options>},
      {"davidnet", "Page's residual network of nine weight layers, made for speed.",
       make_options<DavidNetOptions>, make<DavidNet, DavidNetOptions>},
      {"airbench",
       "Jordan's network of airbench94: frozen whitening convolution, six 3x3 convolutions, GELU.",
       make_options<AirbenchOptions>, make<Airbench, AirbenchOptions>},
      {"noisy_quadratic", "Zhang et al.'s quadratic with known training, for loss = \"mse\" on coin_flips.",
       make_options<NoisyQuadraticOptions>, make<NoisyQuadratic, NoisyQuadraticOptions>},
  };
  return table;
}

std::shared_ptr<Model> make_model(const std::string& name, const AnyOptions& options, const InputShape& shape,
                                  uint64_t master_seed, at::ScalarType dtype, at::Device device) {
  const ModelEntry& entry = find_entry(model_registry(), name, "model");
  at::Generator init = make_generator(derive_seed(master_seed, "init"));
  std::shared_ptr<Model> model = entry.make(options, shape, init);
  for (ParameterInfo parameter : model->parameter_table()) move(parameter.tensor, dtype, device);
  for (auto [buffer_name, buffer] : model->buffer_table()) move(buffer, dtype, device);
  model->seed_dropout(master_seed);
  return model;
}

}  // namespace basin
