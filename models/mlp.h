// defines: Mlp, fully connected layers.
#pragma once

#include <string>
#include <vector>

#include "core/options.h"
#include "models/layers.h"

namespace basin {

struct MlpOptions {
  std::vector<int64_t> hidden = {128, 64};
  std::string activation = "relu";
  std::string norm = "none";
  int64_t groups = 8;
};
void bind_options(OptionTable& table, MlpOptions& options);

/// Flatten, then for each hidden size: linear, norm, activation; then linear to the classes.
/// With hidden = five times 512 and norm = "batch" it is F1 of Keskar et al. 2017 (arXiv 1609.04836, appendix
/// B). Layers: fc1, norm1, fc2, ...; weights start as PyTorch's defaults.
class Mlp : public Model {
 public:
  Mlp(const MlpOptions& options, const InputShape& shape, at::Generator& init);
  at::Tensor forward(const at::Tensor& images) override;
  std::vector<UnitGroup> unit_groups() const override;

 private:
  Activation activation_;
  std::vector<Linear> linears_;
  std::vector<Norm> norms_;
};

}  // namespace basin
