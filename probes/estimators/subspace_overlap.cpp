#include "probes/estimators/subspace_overlap.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace basin {

TopSpace::TopSpace(const std::vector<Eigenpair>& largest, int64_t dimension, int64_t size) {
  const int64_t k = std::min(dimension, size);
  std::vector<at::Tensor> rows;
  double squares = 0;
  for (int64_t i = 0; i < k; ++i) {
    const Eigenpair& pair = largest[i];
    rows.push_back(pair.vector);
    converged = converged && pair.converged;
    if (k == size) continue;  // nothing lies outside
    const double gap = pair.value - largest[k].value - largest[k].residual;
    const double sine = gap > 0 ? pair.residual / gap : std::numeric_limits<double>::infinity();
    squares += sine * sine;
  }
  vectors = at::stack(rows).to(at::kDouble);
  angle = std::sqrt(squares);
}

Overlap overlap_of(const TopSpace& a, const TopSpace& b) {
  const auto k = static_cast<double>(a.vectors.size(0));
  const double squares = a.vectors.mm(b.vectors.t()).square().sum().item<double>();
  // |P Q|_F of the two projections moves by no more than |P' - P|_F + |Q' - Q|_F, each sqrt(2) |sin Theta|_F.
  const double moved = std::sqrt(2.0) * (a.angle + b.angle);
  return {squares / k, std::min(1.0, (2 * std::sqrt(squares) * moved + moved * moved) / k)};
}

}  // namespace basin
