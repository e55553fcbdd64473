#include "runs/parts.h"

#include "models/registry.h"
#include "optim/registry.h"

namespace basin {
namespace {

bool has_dropout(const RunOptions& options) {
  RunOptions copy = options;
  const OptionTable table = copy.table();
  const std::string key = options.model + ".dropout";
  return table.has(key) && table.at(key).get() != OptionValue(false) &&
         table.at(key).get() != OptionValue(0.0);
}

}  // namespace

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
  return plan_batches(options.train, options.data, has_dropout(options), wants_batch_statistics(options),
                      batch_overlap(options));
}

}  // namespace basin
