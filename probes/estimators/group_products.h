// defines: add_group_products(), products of a Hessian with the gradients of groups of examples.
#pragma once

#include "hessian/problem.h"
#include "probes/estimators/curved_noise.h"

namespace basin {

/// Fills what CurvedProducts says about groups of `size` examples, taken from `order` one after the other;
/// `mean` is the gradient of all. H is taken group by group: a graph, then its products with the m deviations
/// and the mean, so that their sums over groups are those with H. Cost: a gradient and m + 1 Hessian-vector
/// products; memory: 2 m + 2 vectors and one group's graphs.
void add_group_products(Problem& problem, const at::Tensor& mean, const at::Tensor& order, int64_t size,
                        CurvedProducts& products);

}  // namespace basin
