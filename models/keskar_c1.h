// defines: KeskarC1, the shallow convolutional network of the large-batch paper.
#pragma once

#include <string>
#include <vector>

#include "core/options.h"
#include "models/layers.h"

namespace basin {

struct KeskarC1Options {
  int64_t width = 64;  // channels of both convolutions
  std::vector<int64_t> hidden = {384, 192};
  double dropout = 0.5;
  std::string activation = "relu";
  std::string norm = "batch";
  int64_t groups = 8;
};
void bind_options(OptionTable& table, KeskarC1Options& options);

/// C1 of Keskar et al. 2017 (arXiv 1609.04836, appendix B; the authors' `shallownet`): twice [convolution
/// 5x5, norm, activation, max-pooling 3x3 of stride 2], then linear layers with norm, activation and dropout,
/// then the classes. 1,757,834 parameters at 3 x 32 x 32 as published. Convolutions and linear layers keep
/// their biases in front of the norm, as in the authors' code: with norm = "batch" the loss in training mode
/// doesn't depend on them. Layers: conv1, norm1, conv2, norm2, fc1, norm3, dropout1, fc2, norm4,
/// dropout2, fc3; weights are initialised as in PyTorch (in the paper as in Keras of 2016).
class KeskarC1 : public Model {
 public:
  KeskarC1(const KeskarC1Options& options, const InputShape& shape, at::Generator& init);
  at::Tensor forward(const at::Tensor& images) override;
  std::vector<UnitGroup> unit_groups() const override;

 private:
  Activation activation_;
  std::vector<Conv2d> convolutions_;
  std::vector<Linear> linears_;
  std::vector<Norm> norms_;        // two of convolutions, then one a hidden layer
  std::vector<Dropout> dropouts_;  // one a hidden layer
};

}  // namespace basin
