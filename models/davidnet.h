// defines: DavidNet, Page's residual network for fast training on CIFAR-10.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/options.h"
#include "models/layers.h"

namespace basin {

struct DavidNetOptions {
  int64_t width = 64;  // channels of the first layer; doubled in each of the next three
  double logit_scale = 0.125;
  std::string activation = "relu";
  std::string norm = "batch";
  int64_t groups = 8;
};
void bind_options(OptionTable& table, DavidNetOptions& options);

/// The network that trained to 94 % on CIFAR-10 in 79 s (Page 2018, "How to train your ResNet"; cifar10-fast,
/// dawn.py), known as ResNet-9 as well. With f(x) = act(norm(conv3x3(x))) and pooling 2x2:
///
///   x <- f(x)                                  prep: width channels
///   x <- pool(f(x));  x <- x + f(f(x))         layer1: 2 width
///   x <- pool(f(x))                            layer2: 4 width
///   x <- pool(f(x));  x <- x + f(f(x))         layer3: 8 width
///   logits = logit_scale W max(x)              maximum over the pixels that are left (4x4 of 32x32), no bias
///
/// 6,573,120 parameters with norm = "batch" at 10 classes: 6.57 million. Activations stand after the pooling,
/// which is the same where they increase (all but gelu). Weights start as PyTorch's defaults, convolutions
/// without bias; norm = "none" gives them biases and the bound sqrt(6 / fan_in) (He-uniform), for the
/// defaults would shrink the signal sixfold per layer. Layers: prep.conv, prep.norm, layer1.conv, layer1.norm,
/// layer1.res1.conv, ..., fc.
class DavidNet : public Model {
 public:
  DavidNet(const DavidNetOptions& options, const InputShape& shape, at::Generator& init);
  at::Tensor forward(const at::Tensor& images) override;
  std::vector<UnitGroup> unit_groups() const override;

 private:
  struct Block {
    Conv2d conv;
    Norm norm;
  };
  struct Layer {
    Block first;
    std::vector<Block> residual;  // none or two
  };
  at::Tensor apply(const Block& block, const at::Tensor& x, bool pool = false) const;

  Activation activation_;
  double logit_scale_;
  std::unique_ptr<Block> prep_;
  std::vector<Layer> layers_;
  std::unique_ptr<Linear> classifier_;
};

}  // namespace basin
