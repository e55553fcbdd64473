// defines: NetworkLayers, the convolutions and linear layers of a network as it computes with them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "hessian/objective.h"

namespace basin {

/// One call of a layer with a trained weight.
struct NetworkLayer {
  std::string name;                 // "conv1"
  size_t parameter = 0;             // place of its weight in ParameterVector::parameters()
  at::Tensor weight;                // with a batch norm after it folded in; float64, on the CPU
  std::vector<int64_t> input;       // sizes of one example's input
  int64_t stride = 1, padding = 0;  // of a convolution
  bool convolution() const { return weight.dim() == 4; }
};

struct NetworkLayers {
  std::vector<NetworkLayer> list;  // in the order of the calls
  double logit_factor = 0;         // logits = factor x outputs of the last layer; NaN where that isn't so
  std::string reason;              // why the list isn't the whole network; empty: it is
};

/// From a forward pass of one example, frozen statistics folded. Frozen weights are in no entry.
NetworkLayers network_layers(Objective& objective);

/// The c of logits = c outputs, both [n, classes]; NaN where there is none.
double logit_factor(const at::Tensor& logits, const at::Tensor& outputs);

}  // namespace basin
