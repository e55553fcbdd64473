#include "apps/run_parts.h"

#include "core/error.h"
#include "models/registry.h"

namespace basin {

at::ScalarType scalar_type(const std::string& dtype) {
  if (dtype == "float64") return at::kDouble;
  if (dtype == "float32") return at::kFloat;
  throw ConfigError("unknown dtype \"" + dtype + "\"; known: float32, float64");
}

std::shared_ptr<Model> build_model(const RunOptions& options, const Dataset& data, at::ScalarType dtype,
                                   at::Device device) {
  const at::Tensor& images = data.train.images;
  const InputShape shape{images.size(1), images.size(2), images.size(3), data.classes()};
  return make_model(options.model, options.models.at(options.model), shape,
                    static_cast<uint64_t>(options.train.seed), dtype, device);
}

}  // namespace basin
