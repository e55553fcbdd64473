// defines: the model toy_linear, for tests/python/extension/test_extension.py.
#include "models/layers.h"
#include "models/registry.h"

namespace basin {
namespace {

struct ToyLinearOptions {
  double scale = 1;
};

void bind_options(OptionTable& table, ToyLinearOptions& options) {
  table.add("scale", options.scale, greater_than(0), "of the logits");
}

/// scale times one linear map of the pixels.
class ToyLinear : public Model {
 public:
  ToyLinear(const ToyLinearOptions& options, const InputShape& shape, at::Generator& init)
      : scale_(options.scale),
        linear_(Builder{*this, init}, "fc", shape.channels * shape.height * shape.width, shape.classes) {}
  at::Tensor forward(const at::Tensor& images) override { return linear_(images.flatten(1)) * scale_; }

 private:
  double scale_;
  Linear linear_;
};

}  // namespace

ModelEntry toy_linear_entry() {
  return model_entry<ToyLinear, ToyLinearOptions>({"toy_linear", "toy", "One linear map, a toy."},
                                                  [](const ToyLinearOptions&) { return ModelTraits{}; });
}

}  // namespace basin
