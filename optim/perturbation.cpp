#include "optim/perturbation.h"

#include "core/error.h"
#include "optim/steepest_ascent.h"

namespace basin {

void bind_options(OptionTable& table, PerturbationOptions& options) {
  table
      .add("kind", options.kind, one_of({"none", "sam", "asam", "gradient_penalty"}),
           "take the gradient at displaced weights; costs two gradients per example")
      .costs();
  table.add(
      "rho", options.rho, at_least(0),
      "sam, asam: radius; the authors' code for CIFAR-10 has 0.05 and 0.5; the two scales can't be compared");
  table.add("eta", options.eta, at_least(0), "asam: scale of a weight is |w| + eta");
  table.add("strength", options.strength, at_least(0),
            "gradient_penalty: alpha of loss + alpha/2 |gradient|^2");
  table.add("difference", options.difference, greater_than(0),
            "gradient_penalty: step length of the forward difference");
  table
      .add("examples", options.examples, at_least(0),
           "m: one displacement per m consecutive examples of the batch; 0: one for the whole batch")
      .costs();
}

Perturbation::Kind Perturbation::kind_of(const std::string& name) {
  if (name == "sam") return Kind::sam;
  if (name == "asam") return Kind::asam;
  if (name == "gradient_penalty") return Kind::gradient_penalty;
  throw ConfigError("unknown perturbation \"" + name + "\"; known: sam, asam, gradient_penalty");
}

Perturbation::Perturbation(const std::vector<ParameterInfo>& parameters, const PerturbationOptions& options)
    : parameters_(parameters), options_(options), kind_(kind_of(options.kind)) {}

void Perturbation::displace(const std::vector<at::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  weights_.clear();
  gradients_.clear();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    weights_.push_back(parameters_[i].tensor.detach().clone());
    if (kind_ == Kind::gradient_penalty) gradients_.push_back(gradients[i].detach().clone());
  }
  const AscentScale scale = kind_ == Kind::asam ? AscentScale::weights : AscentScale::none;
  const Ascent ascent = steepest_ascent(parameters_, gradients, scale, options_.eta);
  norm_ = ascent.slope;
  const double radius = kind_ == Kind::gradient_penalty ? options_.difference : options_.rho;
  const double factor = norm_ > 0 ? radius / norm_ : 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& w = parameters_[i].tensor;
    w.add_(ascent.direction[i].mul(factor).to(w.scalar_type()));
  }
}

void Perturbation::restore(const std::vector<at::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].tensor.copy_(weights_[i]);
    if (kind_ != Kind::gradient_penalty) continue;
    const at::Tensor g = gradients_[i].to(at::kDouble);
    const double factor = options_.strength * norm_ / options_.difference;
    gradients[i].copy_(g + gradients[i].to(at::kDouble).sub(g).mul_(factor));
  }
}

}  // namespace basin
