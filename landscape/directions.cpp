#include "landscape/directions.h"

#include <ATen/ATen.h>

#include "core/math/as_matrix.h"
#include "core/math/tensor_norms.h"
#include "core/seed.h"

namespace basin {
namespace {

constexpr double kGuard = 1e-10;  // Li et al.'s

double scale_to(const at::Tensor& w, const at::Tensor& d) { return norm_of(w) / (norm_of(d) + kGuard); }

// In place, slice by slice along the first axis.
void match_filters(const at::Tensor& w, at::Tensor d) {
  const at::Tensor rows = as_matrix(d), weights = as_matrix(w);
  for (int64_t f = 0; f < rows.size(0); ++f) rows[f].mul_(scale_to(weights[f], rows[f]));
}

}  // namespace

void bind_options(OptionTable& table, DirectionOptions& options) {
  table.add(
      "norm", options.norm, one_of({"filter", "layer", "unit", "none"}),
      "scaling of random directions: to each filter's norm, to each tensor's norm, to length 1, or none");
  table.add("ignore", options.ignore, one_of({"biasbn", "none"}),
            "parameters that random directions leave out: biases and those of normalisation layers, or none");
}

at::Tensor normalised_direction(const ParameterVector& vector, const at::Tensor& weights, at::Tensor d,
                                const DirectionOptions& options) {
  const at::NoGradGuard no_grad;
  at::Tensor direction = d.detach().to(at::kCPU, at::kDouble).contiguous().clone();
  const at::Tensor host = weights.to(at::kCPU, at::kDouble);
  const std::vector<at::Tensor> steps = vector.unflatten(direction), own = vector.unflatten(host);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (options.ignore == "biasbn" && vector.parameters()[i].kind != ParameterKind::weight) {
      at::Tensor(steps[i]).zero_();
    } else if (options.norm == "filter") {
      match_filters(own[i], steps[i]);
    } else if (options.norm == "layer") {
      at::Tensor(steps[i]).mul_(scale_to(own[i], steps[i]));
    }
  }
  if (options.norm == "unit") direction.div_(norm_of(direction));
  return direction;
}

at::Tensor random_direction(const ParameterVector& vector, const at::Tensor& weights,
                            const DirectionOptions& options, uint64_t seed) {
  at::Generator generator = make_generator(seed);
  return normalised_direction(vector, weights, at::randn({vector.size()}, generator, at::kDouble), options);
}

}  // namespace basin
