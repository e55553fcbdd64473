#include "hessian/objective.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/error.h"

namespace basin {

Objective::Objective(std::shared_ptr<Model> model, LossKind loss, at::Tensor inputs, at::Tensor labels,
                     int64_t micro_batch, bool retain_graph)
    : model_(std::move(model)),
      loss_(loss),
      micro_batch_(micro_batch),
      retain_graph_(retain_graph),
      vector_(model_->parameter_table()) {
  if (micro_batch < 1)
    throw ConfigError(fmt::format("micro_batch = {} violates micro_batch >= 1", micro_batch));
  if (labels.size(0) < 1 || inputs.size(0) != labels.size(0)) {
    throw DataError(
        fmt::format("an objective needs as many labels as inputs and at least one; got {} inputs, {} labels",
                    inputs.size(0), labels.size(0)));
  }
  inputs_ = inputs.to(device(), dtype());
  labels_ = labels.to(device(), at::kLong);
  model_->eval();
  model_->set_norm_mode(NormMode::running);
}

at::ScalarType Objective::dtype() const { return vector_.parameters().front().tensor.scalar_type(); }

at::Device Objective::device() const { return vector_.parameters().front().tensor.device(); }

int64_t Objective::micro_batches() const { return (examples() + micro_batch_ - 1) / micro_batch_; }

at::Tensor Objective::losses_of(const at::Tensor& inputs, const at::Tensor& labels) {
  return example_losses(loss_, model_->forward(inputs), labels);
}

double Objective::loss() {
  at::NoGradGuard no_grad;
  double sum = 0;
  for (int64_t first = 0; first < examples(); first += micro_batch_) {
    const int64_t count = std::min(micro_batch_, examples() - first);
    sum += losses_of(inputs_.narrow(0, first, count), labels_.narrow(0, first, count))
               .sum(at::kDouble)
               .item<double>();
  }
  return sum / static_cast<double>(examples());
}

double Objective::accuracy() {
  at::NoGradGuard no_grad;
  int64_t correct = 0;
  for (int64_t first = 0; first < examples(); first += micro_batch_) {
    const int64_t count = std::min(micro_batch_, examples() - first);
    const at::Tensor guess = model_->forward(inputs_.narrow(0, first, count)).argmax(1);
    correct += guess.eq(labels_.narrow(0, first, count)).sum().item<int64_t>();
  }
  return static_cast<double>(correct) / static_cast<double>(examples());
}

at::Tensor Objective::add_gradient(const at::Tensor& inputs, const at::Tensor& labels, double weight,
                                   at::Tensor sum, double* loss) {
  at::AutoGradMode record(true);
  const at::Tensor losses = losses_of(inputs, labels);
  if (loss) *loss += losses.detach().sum(at::kDouble).item<double>() * weight;
  const auto gradients =
      torch::autograd::grad({losses.sum() * weight}, vector_.tensors(), {}, /*retain_graph=*/false,
                            /*create_graph=*/false, /*allow_unused=*/true);
  const at::Tensor flat = vector_.flatten(gradients);
  return sum.defined() ? sum.add_(flat) : flat;
}

at::Tensor Objective::gradient(double* loss) {
  if (loss) *loss = 0;
  const double weight = 1.0 / static_cast<double>(examples());
  at::Tensor sum;
  for (int64_t first = 0; first < examples(); first += micro_batch_) {
    const int64_t count = std::min(micro_batch_, examples() - first);
    sum = add_gradient(inputs_.narrow(0, first, count), labels_.narrow(0, first, count), weight, sum, loss);
  }
  ++gradients_done_;
  return sum;
}

at::Tensor Objective::gradient_over(const at::Tensor& index) {
  const double weight = 1.0 / static_cast<double>(index.size(0));
  const at::Tensor on_device = index.to(device());
  at::Tensor sum;
  for (const at::Tensor& piece : on_device.split(micro_batch_)) {
    sum = add_gradient(inputs_.index_select(0, piece), labels_.index_select(0, piece), weight, sum, nullptr);
  }
  return sum;
}

Objective::Graph Objective::build_graph(int64_t index) {
  at::AutoGradMode record(true);
  const int64_t first = index * micro_batch_;
  const int64_t count = std::min(micro_batch_, examples() - first);
  const at::Tensor losses = losses_of(inputs_.narrow(0, first, count), labels_.narrow(0, first, count));
  const at::Tensor share = losses.sum() / static_cast<double>(examples());
  // grad, never backward: backward with create_graph leaves a reference cycle through .grad.
  const auto gradients = torch::autograd::grad({share}, vector_.tensors(), {}, /*retain_graph=*/true,
                                               /*create_graph=*/true, /*allow_unused=*/true);
  Graph graph;
  graph.parameters = vector_.tensors();
  graph.gradients = gradients;
  return graph;
}

at::Tensor Objective::add_product(const Graph& graph, const std::vector<at::Tensor>& v, at::Tensor sum,
                                  bool retain) const {
  std::vector<at::Tensor> outputs, directions;
  for (size_t i = 0; i < v.size(); ++i) {
    // A parameter that is unused, or in which the loss is linear, adds nothing.
    if (!graph.gradients[i].defined() || !graph.gradients[i].requires_grad()) continue;
    outputs.push_back(graph.gradients[i]);
    directions.push_back(v[i]);
  }
  if (outputs.empty()) return sum;
  // d(g . v)/dw, with v handed in as the weights of the outputs.
  const auto products =
      torch::autograd::grad(outputs, graph.parameters, directions, retain, /*create_graph=*/false,
                            /*allow_unused=*/true);
  return sum.add_(vector_.flatten(products));
}

bool Objective::graphs_are_current() const {
  if (graphs_.empty()) return false;
  for (size_t i = 0; i < graph_versions_.size(); ++i) {
    // A rewritten parameter invalidates the saved tensors even where its old values are back.
    if (vector_.parameters()[i].tensor._version() != graph_versions_[i]) return false;
  }
  return at::equal(vector_.gather(), graphs_at_);  // writes through .data() leave no trace in the counter
}

at::Tensor Objective::hvp(const at::Tensor& v) {
  const std::vector<at::Tensor> pieces = vector_.unflatten(v.to(device(), dtype()));
  at::Tensor sum = at::zeros({vector_.size()}, at::TensorOptions(dtype()).device(device()));
  if (retain_graph_) {
    if (!graphs_are_current()) {
      graphs_.clear();
      for (int64_t i = 0; i < micro_batches(); ++i) graphs_.push_back(build_graph(i));
      graphs_at_ = vector_.gather();
      graph_versions_.clear();
      for (const ParameterInfo& p : vector_.parameters()) graph_versions_.push_back(p.tensor._version());
    }
    for (const Graph& graph : graphs_) sum = add_product(graph, pieces, sum, /*retain=*/true);
  } else {
    for (int64_t i = 0; i < micro_batches(); ++i)
      sum = add_product(build_graph(i), pieces, sum, /*retain=*/false);
  }
  ++hvps_done_;
  return sum;
}

}  // namespace basin
