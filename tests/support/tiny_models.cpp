#include "tests/support/tiny_models.h"

#include "core/seed.h"
#include "models/registry.h"
#include "tests/support/settings.h"

namespace basin::testing {

std::shared_ptr<Model> make_test_model(const std::string& name, const std::vector<std::string>& settings,
                                       const InputShape& shape, uint64_t seed, at::ScalarType dtype) {
  return make_model(name, *test_options(name, settings), shape, seed, dtype);
}

std::unique_ptr<AnyOptions> test_options(const std::string& model, const std::vector<std::string>& settings) {
  return options_with(find_entry(model_registry(), model, "model"), settings);
}

std::vector<std::string> own_models() {
  std::vector<std::string> names;
  for (const ModelEntry& entry : model_registry())
    if (!entry.needs_file) names.push_back(entry.name);
  return names;
}

std::vector<std::vector<std::string>> variants_of(const std::string& model) {
  const auto& variants = find_entry(model_registry(), model, "model").variants;
  return variants.empty() ? std::vector<std::vector<std::string>>{{}} : variants;
}

std::vector<std::string> rectified(const std::string& model) {
  return find_entry(model_registry(), model, "model").rectified;
}

InputShape tiny_shape() { return {.channels = 1, .height = 3, .width = 3, .classes = 3}; }

std::shared_ptr<Model> tiny_mlp(uint64_t seed, at::ScalarType dtype, const std::string& activation) {
  return make_test_model("mlp", {"hidden=[8, 5]", "activation=" + activation}, tiny_shape(), seed, dtype);
}

InputShape tiny_image_shape() { return {.channels = 2, .height = 8, .width = 8, .classes = 3}; }

namespace {

bool takes_tokens(const std::string& model) {
  return find_entry(model_registry(), model, "model").inputs == ModelInputs::tokens;
}

}  // namespace

InputShape tiny_input_shape(const std::string& model) {
  if (takes_tokens(model)) return {.classes = 3, .sizes = {5}, .tokens = 3, .labels = 5};
  return tiny_image_shape();
}

LossKind tiny_loss(const std::string& model) {
  return takes_tokens(model) ? LossKind::token_cross_entropy : LossKind::cross_entropy;
}

std::shared_ptr<Model> tiny_model(const std::string& name, const std::vector<std::string>& extra,
                                  uint64_t seed, at::ScalarType dtype) {
  std::vector<std::string> settings = find_entry(model_registry(), name, "model").tiny;
  settings.insert(settings.end(), extra.begin(), extra.end());
  return make_test_model(name, settings, tiny_input_shape(name), seed, dtype);
}

TinyBatch tiny_batch(const InputShape& shape, int64_t examples, uint64_t seed, at::ScalarType dtype) {
  at::Generator generator = make_generator(derive_seed(seed, "synthetic"));
  if (shape.tokens > 0) {
    const auto tokens = [&](int64_t below) {
      return at::empty({examples, shape.example().front()}, at::kLong).random_(0, below, generator);
    };
    const at::Tensor inputs = tokens(shape.tokens);
    return {inputs, tokens(shape.classes)};
  }
  const std::vector<int64_t> sizes{examples, shape.channels, shape.height, shape.width};
  at::Tensor images = at::empty(sizes, at::kFloat).normal_(0, 1, generator).to(dtype);
  at::Tensor labels = at::empty({examples}, at::kLong).random_(0, shape.classes, generator);
  return {images, labels};
}

}  // namespace basin::testing
