#include "runs/parts.h"

#include "models/registry.h"
#include "optim/registry.h"

namespace basin {

std::shared_ptr<Model> build_model(const RunOptions& options, const Dataset& data, at::ScalarType dtype,
                                   at::Device device) {
  const at::Tensor& images = data.train.images;
  const InputShape shape{images.size(1), images.size(2), images.size(3), data.classes()};
  return make_model(options.model, options.models.at(options.model), shape,
                    static_cast<uint64_t>(options.train.seed), dtype, device);
}

std::unique_ptr<Optimizer> build_optimizer(const RunOptions& options, const Model& model) {
  return find_entry(optimizer_registry(), options.optimizer, "optimizer")
      .make(model.parameter_table(), *scaled_optimizer_options(options));
}

BatchPlan batch_plan_of(const RunOptions& options) {
  const ModelTraits model = model_traits(options);
  return plan_batches(options.train, options.data, model.dropout, model.batch_statistics,
                      optimizer_traits(options).overlap);
}

}  // namespace basin
