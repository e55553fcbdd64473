// defines: CurvatureOperator, products with a curvature matrix of an Objective.
#pragma once

#include <memory>
#include <vector>

#include "hessian/curvature_graph.h"
#include "hessian/problem.h"

namespace basin {

/// A v for one of the matrices of hessian/curvature_graph.h at the model's current parameters, over all
/// examples of the objective, in micro-batches with exact weights. Normalisation is that of the objective
/// (frozen). Ranks that share the objective share the micro-batches and sum the product.
///
/// Graphs of micro-batches are kept between products while they and what one micro-batch's product takes
/// besides, both measured, fit objective.graph_memory(), and built anew for each product past that: a
/// product costs 2 to 2.3 gradients from a kept graph, 3 to 3.4 from a rebuilt one (Hessian). A budget that
/// holds no graph is overstepped by what one micro-batch takes. Changing parameters drops the graphs.
class CurvatureOperator : public CurvatureProducts {
 public:
  CurvatureOperator(Objective& objective, Curvature kind);
  ~CurvatureOperator() override;
  int64_t size() const override;
  at::ScalarType dtype() const override;
  at::Device device() const override;
  at::Tensor apply(const at::Tensor& x) override;
  const RankGroup& ranks() const override;

  int64_t products() const { return products_; }
  int64_t graphs_kept() const { return static_cast<int64_t>(graphs_.size()); }
  int64_t bytes_kept() const { return bytes_; }
  /// Both are with the same few examples (8, or what there is), graph and all. Costs 16/n products.
  double repeat_difference() override;

 private:
  void drop_stale_graphs();
  std::unique_ptr<CurvatureGraph> build(int64_t index);
  at::Tensor share(int64_t index, const std::vector<at::Tensor>& v);
  at::Tensor mean_gradient();

  Objective& objective_;
  Curvature kind_;
  int64_t bytes_ = 0, products_ = 0;
  int64_t peak_ = 0;  // of building one micro-batch's graph and its product
  bool memory_spent_ = false;
  std::vector<std::unique_ptr<CurvatureGraph>> graphs_;  // of the first micro-batches here
  at::Tensor built_at_, gradient_;                       // parameters of the graphs; mean gradient there
  std::vector<int64_t> versions_;                        // version counters of the parameters then
};

}  // namespace basin
