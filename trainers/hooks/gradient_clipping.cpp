#include "trainers/hooks/gradient_clipping.h"

#include "core/math/tensor_norms.h"
#include "trainers/hooks/registry.h"
#include "trainers/tables.h"

namespace basin {
namespace {

double length(const std::vector<double>& parts) {
  double squares = 0;
  for (const double part : parts) squares += part * part;
  return std::sqrt(squares);
}

std::vector<double> norms_of(const std::vector<at::Tensor>& tensors) {
  std::vector<double> norms;
  for (const at::Tensor& tensor : tensors) norms.push_back(norm_of(tensor));
  return norms;
}

}  // namespace

void bind_options(OptionTable& table, GradientClippingOptions& options) {
  table
      .add("clip_gradient", options.limit, at_least(0),
           "largest Euclidean norm of the gradient over all parameters; 0: none")
      .costs_if_on();
}

std::unique_ptr<UpdateHook> GradientClipping::make(const Options& options, const HookSetup& setup) {
  if (options.limit == 0) return nullptr;
  return std::make_unique<GradientClipping>(options.limit, setup.model.parameter_table());
}

void GradientClipping::change_gradient(OngoingUpdate& update) {
  factor_ = 1;
  std::vector<at::Tensor> gradients;
  for (const ParameterInfo& parameter : parameters_) gradients.push_back(parameter.tensor.grad());
  std::vector<double> norms = norms_of(gradients);
  const double norm = length(update.clean.empty() ? norms : norms_of(update.clean));
  if (!update.norms) update.norms = std::move(norms);
  if (!(norm > limit_)) return;
  factor_ = limit_ / norm;
  for (const auto* changed : {&gradients, &update.clean})
    for (const at::Tensor& gradient : *changed) at::Tensor(gradient).mul_(factor_);
}

std::vector<Column> GradientClipping::train_columns() const {
  return {
      column("clip_factor", "1", "clipping factor", "what the gradient was multiplied by: 1, or limit/norm")};
}

HookEntry gradient_clipping_hook() {
  return hook_entry<GradientClipping>({
      .name = "gradient_clipping",
      .help = "A bound on the norm of the gradient.",
      .on = {"clip_gradient=0.2"},
  });
}

}  // namespace basin
