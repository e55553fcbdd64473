// defines: Airbench, the network of airbench94.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/options.h"
#include "models/layers.h"
#include "models/whitening.h"

namespace basin {

struct AirbenchOptions {
  std::vector<int64_t> widths = {64, 256, 256};
  double whiten_eps = 5e-4;  // below it a direction of patches is noise
  double logit_scale = 1.0 / 9;
  std::string activation = "gelu";
  std::string norm = "batch";
  int64_t groups = 8;
};
void bind_options(OptionTable& table, AirbenchOptions& options);

/// The network that trains to 94 % on CIFAR-10 in 3.8 s of an A100 (Jordan 2024, arXiv 2404.00498;
/// cifar10-airbench, legacy/airbench94.py):
///
///   x <- act(whiten(x))              2x2 filters of fixed weights (models/whitening.h), a learned bias
///   x <- act(norm(pool(conv(x))))    a block for each of `widths`: convolutions 3x3, pooling 2x2
///   x <- act(norm(conv(x)))
///   logits = logit_scale W max(x)    maximum over the pixels that are left (3x3 of 32x32), no bias
///
/// Convolutions have no bias; they start as the identity on as many channels as came in, and the rest as
/// PyTorch's default. Norms have no learned scale, and eps 1e-12 as in the source. 1,971,352 trained
/// parameters with norm = "batch" at 3 colours and 10 classes, besides 288 frozen weights. norm = "none" gives
/// the convolutions biases.
///
/// prepare() takes 5,000 images for the whitening. What the source does outside of its network isn't in here:
/// Lookahead, and the whitening bias that stands still after three epochs. Its momentum of running statistics
/// has no counterpart, for they are re-estimated before each use. Layers: whiten, block1.conv1, block1.norm1,
/// block1.conv2, block1.norm2, ..., fc.
class Airbench : public Model {
 public:
  Airbench(const AirbenchOptions& options, const InputShape& shape, at::Generator& init);
  at::Tensor forward(const at::Tensor& images) override;
  int64_t images_to_prepare() const override { return 5000; }
  void prepare(const at::Tensor& images) override { whiten_->fit(images); }
  std::vector<UnitGroup> unit_groups() const override;

 private:
  /// Its scaled() stands for a norm after the pooling: the maximum commutes with a scale above 0, which a
  /// norm without a learned one has.
  struct PooledConv2d {
    Conv2d conv;
    at::Tensor operator()(const at::Tensor& x) const { return max_pool(conv(x), 2, 2); }
    at::Tensor scaled(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift) const {
      return max_pool(conv.scaled(x, scale, shift), 2, 2);
    }
    const at::Tensor& bias() const { return conv.bias(); }
  };
  struct Block {
    PooledConv2d conv1;
    Norm norm1;
    Conv2d conv2;
    Norm norm2;
  };

  Activation activation_;
  double logit_scale_;
  std::unique_ptr<WhiteningConv2d> whiten_;
  std::vector<Block> blocks_;
  std::unique_ptr<Linear> classifier_;
};

}  // namespace basin
