#include "probes/estimators/group_products.h"

#include <ATen/ATen.h>

#include "core/interrupt.h"
#include "core/math/tensor_norms.h"

namespace basin {
namespace {

/// [rows, m + 1] -> [rows, m], [rows]
void split_off_mean(const at::Tensor& all, at::Tensor& groups, at::Tensor& mean) {
  groups = all.slice(1, 0, -1);
  mean = all.select(1, -1);
}

/// One example set's Hessian with each vector, times the set's share of all examples: added to `sums`.
std::vector<at::Tensor> products_of(Problem& part, const std::vector<at::Tensor>& vectors, double share,
                                    std::vector<at::Tensor>& sums) {
  const std::unique_ptr<CurvatureProducts> hessian = part.curvature(Curvature::hessian);
  std::vector<at::Tensor> found;
  for (size_t l = 0; l < vectors.size(); ++l) {
    throw_if_interrupted();
    found.push_back(hessian->apply(vectors[l]));
    sums[l].add_(found.back(), share);
  }
  return found;
}

at::Tensor inner_products(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  std::vector<double> numbers;
  for (size_t i = 0; i < a.size(); ++i) numbers.push_back(inner_product(a[i], b[i]));
  return at::tensor(numbers, at::kDouble);
}

}  // namespace

void add_group_products(Problem& problem, const at::Tensor& mean, const at::Tensor& order, int64_t size,
                        CurvedProducts& products) {
  const int64_t n = order.numel(), count = n / size;
  products.groups = order.narrow(0, 0, count * size).view({count, size});
  std::vector<at::Tensor> vectors, sums;  // a_1 ... a_m and Gbar, and H times them
  for (const at::Tensor& group : products.groups.unbind())
    vectors.push_back(problem.gradient_over(group) - mean);
  vectors.push_back(mean);
  for (const at::Tensor& vector : vectors) sums.push_back(at::zeros_like(vector));

  std::vector<at::Tensor> in_group, with_group;
  for (const at::Tensor& members : order.split(size)) {
    const double share = static_cast<double>(members.numel()) / static_cast<double>(n);
    const std::vector<at::Tensor> found = products_of(*problem.part(members), vectors, share, sums);
    if (members.numel() < size) continue;  // left over
    const std::vector<at::Tensor> own(found.size(), vectors[in_group.size()]);
    in_group.push_back(inner_products(vectors, found));
    with_group.push_back(inner_products(own, found));
  }
  split_off_mean(at::stack(in_group), products.in_group, products.mean_in_group);
  split_off_mean(at::stack(with_group), products.with_group, products.mean_with_group);

  std::vector<at::Tensor> rows;
  for (const at::Tensor& sum : sums)
    rows.push_back(inner_products(vectors, std::vector<at::Tensor>(vectors.size(), sum)));
  const at::Tensor all = at::stack(rows), symmetric = (all + all.t()) / 2;
  split_off_mean(symmetric.slice(0, 0, count), products.deviations, products.with_mean);
  products.mean_square = symmetric[count][count].item<double>();
}

}  // namespace basin
