#include "trainers/hooks/weight_copy.h"

#include "core/error.h"

namespace basin {

WeightCopy::WeightCopy(const std::vector<ParameterInfo>& parameters, std::string what)
    : parameters_(parameters), what_(std::move(what)) {
  for (const ParameterInfo& parameter : parameters_) tensors_.push_back(parameter.tensor.detach().clone());
}

void WeightCopy::approach(double share) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].lerp_(parameters_[i].tensor, share);
}

void WeightCopy::put_back() const {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < tensors_.size(); ++i) parameters_[i].tensor.copy_(tensors_[i]);
}

NamedTensors WeightCopy::state() const {
  NamedTensors state;
  for (size_t i = 0; i < tensors_.size(); ++i)
    state.emplace_back(parameters_[i].name, tensors_[i].to(at::kCPU).contiguous().clone());
  return state;
}

void WeightCopy::load_state(const NamedTensors& state) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const std::string& name = parameters_[i].name;
    const auto found =
        std::find_if(state.begin(), state.end(), [&](const auto& entry) { return entry.first == name; });
    if (found == state.end()) throw IoError("checkpoint: no " + what_ + " of \"" + name + "\"");
    if (found->second.sizes() != tensors_[i].sizes())
      throw IoError("checkpoint: the " + what_ + " of \"" + name + "\" has another shape than the model's");
    tensors_[i].copy_(found->second);
  }
}

}  // namespace basin
