#include "optim/matrix/kronecker_optimizer.h"

#include <ATen/ATen.h>

namespace basin {

std::vector<int64_t> KroneckerOptimizer::sizes_of(const at::Tensor& tensor) {
  return tensor.dim() == 0 ? std::vector<int64_t>{1} : tensor.sizes().vec();
}

void KroneckerOptimizer::add_families(const std::string& statistic, const std::vector<Shapes>& of_statistic,
                                      const std::string& derived, const std::vector<Shapes>& of_derived) {
  first_ = slot_count();
  size_t dimensions = 0;
  for (const Shapes& shapes : of_statistic) dimensions = std::max(dimensions, shapes.size());
  const auto add = [&](const std::string& name, const std::vector<Shapes>& all, size_t dimension) {
    std::vector<at::Tensor> tensors;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const at::TensorOptions options = parameters_[i].tensor.detach().options();
      const bool has_one = dimension < all[i].size() && !all[i][dimension].empty();
      tensors.push_back(has_one ? at::zeros(all[i][dimension], options) : at::empty({0}, options));
    }
    add_slot(fmt::format("{}{}", name, dimension), std::move(tensors));
  };
  for (size_t dimension = 0; dimension < dimensions; ++dimension) {
    add(statistic, of_statistic, dimension);
    add(derived, of_derived, dimension);
  }
}

KroneckerFactors KroneckerOptimizer::factors(size_t i) const {
  KroneckerFactors found;
  for (size_t d = 0; d < sizes_of(parameters_[i].tensor).size(); ++d)
    found.push_back(derived(i, d).dim() == 2 ? derived(i, d) : at::Tensor());
  return found;
}

}  // namespace basin
