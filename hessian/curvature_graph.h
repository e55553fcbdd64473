// defines: CurvatureGraph: one micro-batch's share of a curvature matrix, ready for products.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "hessian/curvature_kind.h"

namespace basin {

class Objective;

/// Holds the graph of one micro-batch. product(v): its share of A v, of F v for gradient_covariance.
/// Undefined entries: nothing depends on that parameter. v: tensors shaped as the parameters.
class CurvatureGraph {
 public:
  virtual ~CurvatureGraph() = default;
  virtual std::vector<at::Tensor> product(const std::vector<at::Tensor>& v) const = 0;
};

/// The graph of examples first .. first + count - 1 of the objective, weighted by 1 / objective.examples().
std::unique_ptr<CurvatureGraph> make_curvature_graph(Curvature kind, Objective& objective, int64_t first,
                                                     int64_t count);

}  // namespace basin
