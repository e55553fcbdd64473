#include "trainers/hooks/noise_control.h"

#include "core/error.h"
#include "core/math/tensor_norms.h"

namespace basin {

const std::vector<std::string>& NoiseControl::names() {
  static const std::vector<std::string> names{"none", "isotropic", "coordinate_signs", "layers_exchanged"};
  return names;
}

NoiseControl::NoiseControl(const std::string& name, const std::vector<ParameterInfo>& parameters,
                           uint64_t seed)
    : kind_(static_cast<Kind>(std::find(names().begin(), names().end(), name) - names().begin())),
      draws_(seed, "noise-control", kind_ == Kind::coordinate_signs) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (i == 0 || parameters[i].layer != parameters[i - 1].layer) layers_.emplace_back(i, i);
    layers_.back().second = i + 1;
  }
  if (kind_ == Kind::layers_exchanged && layers_.size() < 2)
    throw ConfigError("noise.control = \"layers_exchanged\" needs a network of at least two layers");
}

void NoiseControl::replace(const std::vector<at::Tensor>& z, int64_t update) const {
  if (kind_ == Kind::layers_exchanged) {
    exchange(z);
    return;
  }
  const std::vector<at::Tensor> other = drawn(z, update);
  if (kind_ == Kind::coordinate_signs) {
    for (size_t i = 0; i < z.size(); ++i) at::Tensor(z[i]).mul_(other[i]);
    return;
  }
  const double factor = std::sqrt(squared_norm(z) / squared_norm(other));
  for (size_t i = 0; i < z.size(); ++i) at::Tensor(z[i]).copy_(other[i].mul(factor));
}

// A number for each coordinate, in float64.
std::vector<at::Tensor> NoiseControl::drawn(const std::vector<at::Tensor>& z, int64_t update) const {
  std::vector<at::Tensor> result;
  int64_t coordinate = 0;
  for (const at::Tensor& tensor : z) {
    const at::Tensor numbers = at::empty(tensor.sizes(), at::kDouble);
    double* const first = numbers.mutable_data_ptr<double>();
    for (int64_t j = 0; j < numbers.numel(); ++j) first[j] = draws_.at(update, coordinate++);
    result.push_back(numbers.to(tensor.device()));
  }
  return result;
}

void NoiseControl::exchange(const std::vector<at::Tensor>& z) const {
  std::vector<double> lengths;
  for (const auto& [begin, end] : layers_) {
    double square = 0;
    for (size_t i = begin; i < end; ++i) square += squared_norm(z[i]);
    lengths.push_back(std::sqrt(square));
  }
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    if (lengths[layer] == 0) continue;
    const double factor = lengths[(layer + 1) % layers_.size()] / lengths[layer];
    for (size_t i = layers_[layer].first; i < layers_[layer].second; ++i) at::Tensor(z[i]).mul_(factor);
  }
}

}  // namespace basin
