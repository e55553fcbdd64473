#include "hessian/curvature_operator.h"

#include <ATen/ATen.h>

#include "core/device.h"
#include "core/math/tensor_norms.h"
#include "hessian/objective.h"

namespace basin {
namespace {

/// Memory of the process over that of tensors, in a product: kernels' own scratch and what the allocator
/// loses. Seen: 1.3 to 1.7.
constexpr double kScratch = 1.7;

}  // namespace

std::unique_ptr<CurvatureProducts> Objective::curvature(Curvature kind) {
  return std::make_unique<CurvatureOperator>(*this, kind);
}

CurvatureOperator::CurvatureOperator(Objective& objective, Curvature kind)
    : objective_(objective), kind_(kind) {}

CurvatureOperator::~CurvatureOperator() = default;

int64_t CurvatureOperator::size() const { return objective_.parameters().size(); }

at::ScalarType CurvatureOperator::dtype() const { return objective_.dtype(); }

const RankGroup& CurvatureOperator::ranks() const { return objective_.ranks(); }
at::Device CurvatureOperator::device() const { return objective_.device(); }

void CurvatureOperator::drop_stale_graphs() {
  const ParameterVector& vector = objective_.parameters();
  bool current = built_at_.defined();
  for (size_t i = 0; current && i < versions_.size(); ++i) {
    // A rewritten parameter invalidates the saved tensors even where its old values are back.
    current = vector.parameters()[i].tensor._version() == versions_[i];
  }
  // Writes through .data() leave no trace in the counter.
  if (current && at::equal(vector.gather(), built_at_)) return;
  graphs_.clear();
  bytes_ = peak_ = 0;
  memory_spent_ = objective_.graph_memory() == 0;
  gradient_ = at::Tensor();
  built_at_ = vector.gather();
  versions_.clear();
  for (const ParameterInfo& p : vector.parameters()) versions_.push_back(p.tensor._version());
}

std::unique_ptr<CurvatureGraph> CurvatureOperator::build(int64_t index) {
  const int64_t first = index * objective_.micro_batch();
  return make_curvature_graph(kind_, objective_, first,
                              std::min(objective_.micro_batch(), objective_.examples() - first));
}

/// The micro-batch's part of the product; its graph is kept where that and one more product fit the budget.
at::Tensor CurvatureOperator::share(int64_t index, const std::vector<at::Tensor>& v) {
  const ParameterVector& vector = objective_.parameters();
  const Share here = objective_.micro_batches_here();
  if (index - here.first < graphs_kept()) return vector.flatten(graphs_[index - here.first]->product(v));
  if (memory_spent_) return vector.flatten(build(index)->product(v));
  const MemoryWatch memory(device());
  std::unique_ptr<CurvatureGraph> graph = build(index);
  const int64_t size = memory.held();
  const at::Tensor result = vector.flatten(graph->product(v));
  peak_ = std::max(peak_, memory.peak());
  // The next micro-batch has to be built in addition to what is kept; the last one needs only its product.
  const int64_t one = static_cast<int64_t>(kScratch * static_cast<double>(peak_));
  const int64_t beside = index + 1 < here.last ? one : one - size;
  memory_spent_ = bytes_ + size + beside > objective_.graph_memory();
  if (!memory_spent_) {
    bytes_ += size;
    graphs_.push_back(std::move(graph));
  }
  return result;
}

at::Tensor CurvatureOperator::mean_gradient() {
  if (!gradient_.defined()) gradient_ = objective_.gradient();
  return gradient_;
}

at::Tensor CurvatureOperator::apply(const at::Tensor& x) {
  drop_stale_graphs();
  const at::Tensor on_device = x.to(device(), dtype());
  const std::vector<at::Tensor> v = objective_.parameters().unflatten(on_device);
  at::Tensor sum;
  const Share here = objective_.micro_batches_here();
  for (int64_t i = here.first; i < here.last; ++i) {
    const at::Tensor part = share(i, v);
    sum = sum.defined() ? sum.add_(part) : part;
  }
  if (!sum.defined()) sum = at::zeros_like(on_device);
  objective_.ranks().sum(sum);
  if (kind_ == Curvature::gradient_covariance) {
    const at::Tensor g = mean_gradient();
    sum = sum - g * g.dot(on_device);
  }
  ++products_;
  return sum;
}

double CurvatureOperator::repeat_difference() {
  const at::Tensor direction = at::ones({size()}, at::TensorOptions(dtype()).device(device()));
  const std::vector<at::Tensor> v = objective_.parameters().unflatten(direction);
  const auto product = [&] {
    const int64_t few = std::min<int64_t>(8, objective_.examples());
    return objective_.parameters().flatten(make_curvature_graph(kind_, objective_, 0, few)->product(v));
  };
  const at::Tensor first = product(), second = product();
  const double size = norm_of(first), difference = norm_of(first - second);
  return difference == 0 ? 0 : difference / size;
}

}  // namespace basin
