#include "hessian/gradients/output_gradients.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_map>
#include <unordered_set>

namespace basin {
namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;

using Take = std::function<void(size_t call, const at::Tensor& gradient)>;

/// Seen by the engine where it comes through a node of the graph. It may outlive the pass and `take`, for as
/// long as somebody holds the graph.
class OutputHook final : public torch::autograd::FunctionPreHook {
 public:
  OutputHook(std::weak_ptr<const Take> take, size_t call, uint32_t which)
      : take_(std::move(take)), call_(call), which_(which) {}
  variable_list operator()(const variable_list& gradients) override {
    const auto take = take_.lock();
    if (take && gradients[which_].defined()) (*take)(call_, gradients[which_]);
    return gradients;
  }

 private:
  std::weak_ptr<const Take> take_;
  size_t call_;
  uint32_t which_;
};

/// Whether the way from a node on to the leaves comes by a call.
class WayOn {
 public:
  explicit WayOn(const std::vector<LayerCall>& calls) {
    for (const LayerCall& call : calls) calls_.insert(call.output_edge.function.get());
  }
  bool has_call(const Node* node) {
    const auto known = found_.find(node);
    if (known != found_.end()) return known->second;
    bool any = false;
    for (const torch::autograd::Edge& edge : node->next_edges()) {
      const Node* next = edge.function.get();
      any = any || (next && (calls_.count(next) > 0 || has_call(next)));
    }
    return found_[node] = any;
  }

 private:
  std::unordered_set<const Node*> calls_;
  std::unordered_map<const Node*, bool> found_;
};

/// Where the pass may end: it goes through all other calls on its way there.
torch::autograd::edge_list ends_of(const std::vector<LayerCall>& calls) {
  WayOn way(calls);
  torch::autograd::edge_list ends;
  for (const LayerCall& call : calls)
    if (!way.has_call(call.output_edge.function.get())) ends.push_back(call.output_edge);
  return ends;
}

}  // namespace

void for_each_output_gradient(const at::Tensor& loss, const std::vector<LayerCall>& calls,
                              const std::function<void(size_t call, const at::Tensor& gradient)>& take) {
  if (calls.empty()) return;
  const torch::autograd::edge_list ends = ends_of(calls);
  const auto shared = std::make_shared<const Take>(take);
  for (size_t i = 0; i < calls.size(); ++i) {
    const torch::autograd::Edge& edge = calls[i].output_edge;
    edge.function->add_tensor_pre_hook(std::make_unique<OutputHook>(shared, i, edge.input_nr));
  }
  torch::autograd::Engine::get_default_engine().execute(
      {torch::autograd::impl::gradient_edge(loss)}, {at::ones_like(loss)}, /*keep_graph=*/false,
      /*create_graph=*/false, /*accumulate_grad=*/false, ends);
}

}  // namespace basin
