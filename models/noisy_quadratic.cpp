#include "models/noisy_quadratic.h"

#include "core/error.h"
#include "models/layers/layer_calls.h"
#include "models/registry.h"

namespace basin {

void bind_options(OptionTable& table, NoisyQuadraticOptions& options) {
  table.add("power", options.power, at_least(0), "curvature h_i = i^-power; 1 in the paper");
  table.add("precondition", options.precondition, between(0, 1), "p of the preconditioner H^p; 0: none");
}

NoisyQuadratic::NoisyQuadratic(const NoisyQuadraticOptions& options, const InputShape& shape,
                               at::Generator& init) {
  const int64_t d = shape.classes, pixels = shape.channels * shape.height * shape.width;
  if (pixels < d) {
    throw ConfigError(fmt::format(
        "noisy_quadratic needs one pixel for each class: images of {} x {} x {} are too small for "
        "{} classes",
        shape.channels, shape.height, shape.width, d));
  }
  const at::Tensor h = at::arange(1, d + 1, at::kDouble).pow(-options.power).unsqueeze(0);
  slope_ = h.pow((1 - options.precondition) / 2);
  first_target_ = at::zeros_like(h);
  first_target_[0][0] = 1;
  const at::Tensor sign = at::randint(0, 2, {1, d}, init, at::kFloat).mul_(2).sub_(1);
  phi_ = add_parameter("phi", "weight", ParameterKind::weight,
                       sign * h.pow(options.precondition / 2).to(at::kFloat));
}

at::Tensor NoisyQuadratic::forward(const at::Tensor& images) {
  const at::Tensor x = images.flatten(1).narrow(1, 0, phi_.size(1));
  if (!slope_as_phi_.defined() || slope_as_phi_.dtype() != phi_.dtype() ||
      slope_as_phi_.device() != phi_.device()) {
    slope_as_phi_ = slope_.to(phi_.options());
    first_target_as_phi_ = first_target_.to(phi_.options());
  }
  at::Tensor y = slope_as_phi_ * phi_ + first_target_as_phi_ - x;
  if (LayerCalls* calls = LayerCalls::active()) {
    const auto slope = [this](const at::Tensor&) { return slope_as_phi_; };
    calls->add({LayerCall::Kind::scaling, phi_, {}, x, 1, 0, slope}, y);
  }
  return y;
}

ModelEntry noisy_quadratic_entry() {
  return model_entry<NoisyQuadratic, NoisyQuadraticOptions>(
      {"noisy_quadratic",
       "noisy quadratic",
       "Zhang et al.'s noisy quadratic, whose training has a closed form; for loss = \"mse\" on coin_flips.",
       {}},
      [](const NoisyQuadraticOptions&) { return ModelTraits{}; });
}

}  // namespace basin
