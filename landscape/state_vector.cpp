#include "landscape/state_vector.h"

#include <ATen/ATen.h>

#include "core/error.h"

namespace basin {
namespace {

bool is_running_statistic(const std::string& name) {
  return name.ends_with(".running_mean") || name.ends_with(".running_var");
}

at::Tensor flat64(const at::Tensor& tensor) { return tensor.detach().to(at::kDouble).reshape({-1}); }

}  // namespace

StateVector::StateVector(Model& model)
    : parameters_(model.parameter_table()), buffers_(model.buffer_table()) {
  for (const auto& [name, tensor] : buffers_) buffer_size_ += tensor.numel();
}

at::Device StateVector::device() const { return parameters_.parameters().front().tensor.device(); }

at::Tensor StateVector::gather() const {
  std::vector<at::Tensor> pieces = {parameters_.gather().to(at::kDouble)};
  for (const auto& [name, tensor] : buffers_) pieces.push_back(flat64(tensor));
  return at::cat(pieces);
}

at::Tensor StateVector::of(const Checkpoint& checkpoint, const std::string& file) const {
  std::vector<at::Tensor> pieces;
  const auto add = [&](const std::string& name, const at::Tensor& own, const at::Tensor& stored) {
    if (!stored.defined() || stored.sizes() != own.sizes()) {
      throw IoError(fmt::format("{}: another network: {} \"{}\" of shape [{}]", file,
                                stored.defined() ? "it has no" : "there is no", name,
                                fmt::join(own.sizes(), ", ")));
    }
    pieces.push_back(flat64(stored));
  };
  for (const ParameterInfo& parameter : parameters_.parameters()) {
    const auto found =
        std::find_if(checkpoint.parameters.begin(), checkpoint.parameters.end(),
                     [&](const ParameterInfo& stored) { return stored.name == parameter.name; });
    add(parameter.name, parameter.tensor,
        found == checkpoint.parameters.end() ? at::Tensor() : found->tensor);
  }
  for (const auto& [name, tensor] : buffers_) {
    const auto found =
        std::find_if(checkpoint.buffers.begin(), checkpoint.buffers.end(),
                     [&, &wanted = name](const auto& stored) { return stored.first == wanted; });
    add(name, tensor, found == checkpoint.buffers.end() ? at::Tensor() : found->second);
  }
  if (checkpoint.parameters.size() != parameters_.parameters().size()) {
    throw IoError(fmt::format("{}: another network: it has {} parameters, not {}", file,
                              checkpoint.parameters.size(), parameters_.parameters().size()));
  }
  return at::cat(pieces).to(device());
}

void StateVector::scatter(const at::Tensor& state, bool running_statistics) const {
  at::NoGradGuard no_grad;
  parameters_.scatter(state.narrow(0, 0, parameter_size()));
  int64_t offset = parameter_size();
  for (const auto& [name, tensor] : buffers_) {
    const at::Tensor piece = state.narrow(0, offset, tensor.numel());
    offset += tensor.numel();
    if (running_statistics || !is_running_statistic(name)) tensor.detach().copy_(piece.view(tensor.sizes()));
  }
}

}  // namespace basin
