#include "trainers/weight_average.h"

namespace basin {

WeightAverage::WeightAverage(const std::vector<ParameterInfo>& parameters, double decay)
    : decay_(decay), average_(parameters, "average") {}

double WeightAverage::decay_of(double decay, int64_t t) {
  const double updates = static_cast<double>(t);
  return std::min(decay, (1 + updates) / (10 + updates));
}

void WeightAverage::add(int64_t t) { average_.approach(1 - decay_of(decay_, t)); }

AveragedModel::AveragedModel(const WeightAverage& average, const Model& model) {
  for (const ParameterInfo& parameter : model.parameter_table()) tensors_.push_back(parameter.tensor);
  for (const auto& [name, buffer] : model.buffer_table()) tensors_.push_back(buffer);
  const at::NoGradGuard no_grad;
  for (const at::Tensor& tensor : tensors_) kept_.push_back(tensor.detach().clone());
  for (size_t i = 0; i < average.tensors().size(); ++i) tensors_[i].copy_(average.tensors()[i]);
}

AveragedModel::~AveragedModel() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].copy_(kept_[i]);
}

}  // namespace basin
