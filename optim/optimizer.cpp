#include "optim/optimizer.h"

#include "core/error.h"
#include "core/tensor_norms.h"

namespace basin {

namespace {

struct LearningRate : torch::optim::OptimizerCloneableOptions<LearningRate> {
  double value = 0;
  double get_lr() const override { return value; }
  void set_lr(const double lr) override { value = lr; }
};

std::vector<at::Tensor> tensors_of(const std::vector<ParameterInfo>& parameters) {
  std::vector<at::Tensor> tensors;
  for (const ParameterInfo& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
}

void restore(at::Tensor target, const at::Tensor& saved, const std::string& name) {
  if (saved.sizes() != target.sizes() || saved.scalar_type() != target.scalar_type()) {
    throw IoError(fmt::format("optimiser state \"{}\": expected {} {}, found {} {}", name,
                              c10::toString(target.scalar_type()), target.sizes().vec(),
                              c10::toString(saved.scalar_type()), saved.sizes().vec()));
  }
  target.copy_(saved);
}

}  // namespace

Optimizer::Optimizer(std::vector<ParameterInfo> parameters)
    : torch::optim::Optimizer(tensors_of(parameters), std::make_unique<LearningRate>()),
      parameters_(std::move(parameters)),
      last_step_(parameters_.size()) {}

torch::Tensor Optimizer::step(LossClosure closure) {
  torch::Tensor loss;
  if (closure) {
    at::AutoGradMode enable_grad(true);
    loss = closure();
  }
  at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& weights = parameters_[i].tensor;
    const at::Tensor& defined = weights.grad();
    const at::Tensor gradient = defined.defined() ? defined : at::zeros_like(weights);
    last_step_[i] = {.weight_norm = norm_of(weights), .gradient_norm = norm_of(gradient)};
    update_parameter(i, gradient);
  }
  ++updates_;
  return loss;
}

std::vector<at::Tensor> Optimizer::preconditioner(const std::vector<at::Tensor>& /*gradients*/) const {
  std::vector<at::Tensor> ones;
  for (const ParameterInfo& parameter : parameters_) ones.push_back(at::ones_like(parameter.tensor.detach()));
  return ones;
}

void Optimizer::add_scaled(const at::Tensor& w, const at::Tensor& d, double factor) {
  if (std::abs(factor) <= std::numeric_limits<float>::max()) {
    w.add_(d, factor);
  } else {
    w.add_((d.to(at::kDouble) * factor).to(w.scalar_type()));
  }
}

void Optimizer::add_slot(const std::string& name) {
  std::vector<at::Tensor> tensors;
  for (const ParameterInfo& parameter : parameters_)
    tensors.push_back(at::zeros_like(parameter.tensor.detach()));
  slots_.emplace_back(name, std::move(tensors));
}

NamedTensors Optimizer::state() const {
  NamedTensors state{{"updates", at::scalar_tensor(updates_, at::kLong)}};
  for (const auto& [name, tensors] : slots_) {
    for (size_t i = 0; i < tensors.size(); ++i)
      state.emplace_back(name + "/" + parameters_[i].name, tensors[i].clone());
  }
  return state;
}

void Optimizer::load_state(const NamedTensors& state) {
  std::map<std::string, at::Tensor> saved(state.begin(), state.end());
  const auto take = [&](const std::string& name) {
    const auto node = saved.extract(name);
    if (node.empty()) throw IoError("optimiser state lacks \"" + name + "\"");
    return node.mapped();
  };
  const at::Tensor updates = take("updates");
  if (updates.numel() != 1) throw IoError("optimiser state \"updates\": expected one number");
  for (const auto& [name, tensors] : slots_) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string full_name = name + "/" + parameters_[i].name;
      restore(tensors[i], take(full_name), full_name);
    }
  }
  if (!saved.empty()) throw IoError("optimiser state has an unknown entry \"" + saved.begin()->first + "\"");
  updates_ = updates.item<int64_t>();
}

}  // namespace basin
