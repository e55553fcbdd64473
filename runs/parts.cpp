#include "runs/parts.h"

#include "models/loss.h"
#include "models/registry.h"
#include "optim/registry.h"
#include "trainers/workers/stale_options.h"

namespace basin {

namespace {

InputShape shape_of(const Dataset& data) {
  const at::Tensor& inputs = data.train.inputs;
  InputShape shape{.classes = data.outputs()};
  if (label_kind(data.train.labels) == LabelKind::tokens) shape.labels = data.train.labels.size(1);
  if (inputs.dim() == 4) {
    shape.channels = inputs.size(1), shape.height = inputs.size(2), shape.width = inputs.size(3);
  } else {
    shape.sizes = inputs.sizes().slice(1).vec();
  }
  if (data.train.has_pictures() || inputs.is_floating_point()) return shape;
  for (const Split* split : {&data.train, &data.validation, &data.test})
    if (split->size() > 0) shape.tokens = std::max(shape.tokens, split->inputs.max().item<int64_t>() + 1);
  return shape;
}

}  // namespace

std::shared_ptr<Model> build_model(const RunOptions& options, const Dataset& data, at::ScalarType dtype,
                                   at::Device device) {
  const InputShape shape = shape_of(data);
  check_loss(loss_kind(options.train.loss), data.train.labels, data.name);
  check_inputs(find_entry(model_registry(), options.model, "model"), shape, data.name);
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

int64_t most_ranks(const RunOptions& options) {
  const auto& parallel = options.train.hook<StaleGradientOptions>();
  if (parallel.real()) return parallel.workers + 1;
  return most_ranks(batch_plan_of(options), model_traits(options).batch_statistics);
}

}  // namespace basin
