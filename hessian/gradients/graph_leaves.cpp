#include "hessian/gradients/graph_leaves.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <unordered_set>

namespace basin {

using torch::autograd::Node;

std::unordered_map<const c10::TensorImpl*, int64_t> uses_of_leaves(const at::Tensor& value) {
  std::unordered_map<const c10::TensorImpl*, int64_t> uses;
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> left{value.grad_fn().get()};
  while (!left.empty()) {
    const Node* node = left.back();
    left.pop_back();
    if (!node || !seen.insert(node).second) continue;
    for (const torch::autograd::Edge& edge : node->next_edges()) {
      const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(edge.function.get());
      if (leaf) {
        ++uses[leaf->variable.unsafeGetTensorImpl()];
      } else {
        left.push_back(edge.function.get());
      }
    }
  }
  return uses;
}

}  // namespace basin
