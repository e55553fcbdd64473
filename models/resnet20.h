// defines: ResNet20, the CIFAR residual network.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/options.h"
#include "models/layers.h"

namespace basin {

struct ResNet20Options {
  int64_t width = 16;  // channels of the first stage; doubled in each of the next two
  int64_t blocks = 3;  // blocks per stage; 6 * blocks + 2 weight layers
  std::string activation = "relu";
  std::string norm = "batch";
  int64_t groups = 8;
};
void bind_options(OptionTable& table, ResNet20Options& options);

/// ResNet-20 of He et al. 2016 (arXiv 1512.03385, section 4.2): convolution 3x3, three stages of blocks
/// act(norm(conv(act(norm(conv(x))))) + shortcut(x)), global average pool, linear. Stages 2 and 3 start with
/// stride 2, where the shortcut is option A: every second pixel, and zeros for the new channels, half of them
/// on either side. 269,722 parameters with norm = "batch" (or "group") at 10 classes. Weights start He-normal
/// (fan-in), linear biases at 0.
///
/// norm = "none" needs something in the norms' place to keep activations from doubling in variance at every
/// block: the convolutions get biases (0), and each block's last convolution starts at He / sqrt(number of
/// blocks), so that the whole depth adds a factor of about e. Not zero, as Fixup (Zhang et al. 2019) has it:
/// LARS and LAMB hardly move a layer whose norm is near 0. Layers: conv1, norm1, stage1.block1.conv1,
/// stage1.block1.norm1, ..., fc.
class ResNet20 : public Model {
 public:
  ResNet20(const ResNet20Options& options, const InputShape& shape, at::Generator& init);
  at::Tensor forward(const at::Tensor& images) override;
  std::vector<UnitGroup> unit_groups() const override;

 private:
  struct Block {
    int64_t in, out, stride;
    Conv2d conv1;
    Norm norm1;
    Conv2d conv2;
    Norm norm2;
  };
  Block make_block(const Builder& builder, const std::string& name, int64_t in, int64_t out, int64_t stride,
                   const ResNet20Options& options);
  at::Tensor apply(const Block& block, const at::Tensor& x) const;

  Activation activation_;
  std::unique_ptr<Conv2d> conv1_;
  std::unique_ptr<Norm> norm1_;
  std::vector<Block> blocks_;
  std::unique_ptr<Linear> classifier_;
};

}  // namespace basin
