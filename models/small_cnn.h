// defines: SmallCnn, a plain stack of 3x3 convolutions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/options.h"
#include "models/layers.h"

namespace basin {

struct SmallCnnOptions {
  std::vector<int64_t> widths = {16, 32, 64};
  std::string activation = "relu";
  std::string downsample = "pool";  // pool | stride
  int64_t kernel = 3;
  std::string norm = "none";
  int64_t groups = 8;
};
void bind_options(OptionTable& table, SmallCnnOptions& options);

/// For each width: convolution (odd kernel, zero padding that keeps the size), norm, activation, and a
/// halving of height and width by 2x2 max-pooling or by a stride of 2 in the convolution; then flatten
/// (channels, rows, columns) and linear. Layers: conv1, norm1, conv2, ..., fc; weights start as PyTorch's
/// defaults.
class SmallCnn : public Model {
 public:
  SmallCnn(const SmallCnnOptions& options, const InputShape& shape, at::Generator& init);
  at::Tensor forward(const at::Tensor& images) override;
  std::vector<UnitGroup> unit_groups() const override;

 private:
  Activation activation_;
  bool pool_;
  std::vector<Conv2d> convolutions_;
  std::vector<Norm> norms_;
  std::unique_ptr<Linear> classifier_;
};

}  // namespace basin
