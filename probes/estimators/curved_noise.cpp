#include "probes/estimators/curved_noise.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/math/nan.h"
#include "core/math/statistics.h"

namespace basin {
namespace {

double number(const at::Tensor& value) { return value.item<double>(); }

/// tr(K Sigma) of n examples whose deviations from the mean have these sums: of lambda_k times squares, and
/// by k.
double trace_in_k(double squares, const at::Tensor& sums, const at::Tensor& values, double n) {
  return (squares - number(values.dot(sums.square())) / n) / (n - 1);
}

/// tr((H - K) Sigma) from groups of b of n examples: `squares`, the sum over `groups` of them.
double trace_beside_k(double squares, double groups, double b, double n) {
  return squares / groups * b * n / (n - b);
}

/// Standard deviation of single groups' estimates of the trace.
double deviation_of(const at::Tensor& diagonal, double b, double n) {
  return diagonal.numel() < 2 ? kNaN : number(diagonal.std()) * b * n / (n - b);
}

std::vector<double> below_diagonal(const at::Tensor& matrix) {
  std::vector<double> found;
  for (int64_t j = 1; j < matrix.size(0); ++j) {
    for (const double value : to_doubles(matrix[j].narrow(0, 0, j))) found.push_back(value);
  }
  return found;
}

/// Sums over single examples and over groups, of all and by group.
struct Sums {
  explicit Sums(const CurvedProducts& p)
      : n(static_cast<double>(p.along.size(0))),
        m(static_cast<double>(p.groups.size(0))),
        b(static_cast<double>(p.groups.size(1))) {
    const at::Tensor apart = p.along - p.along.mean(0), weighted = apart.square().mv(p.values);
    squares = weighted.take(p.groups).sum(1);
    by_k = apart.index_select(0, p.groups.flatten()).view({p.groups.size(0), p.groups.size(1), -1}).sum(1);
    in_k = (by_k * p.values).mm(by_k.t()) / (b * b);
    all_squares = number(weighted.sum());
    all_by_k = apart.sum(0);
  }
  double n, m, b, all_squares = 0;
  at::Tensor all_by_k, squares, by_k;  // [k], [m], [m, k]
  at::Tensor in_k;                     // [m, m]: a_j' K a_l
};

/// sum over l but j of (a_l + shift a_j)' A (a_l + shift a_j) from a_l' A a_l and a_j' A a_l.
double sum_of_others(const at::Tensor& squares, const at::Tensor& with_j, int64_t j, double shift) {
  const double own = number(squares[j]), others = static_cast<double>(squares.numel()) - 1;
  return number(squares.sum()) - own + 2 * shift * (number(with_j.sum()) - own) +
         others * shift * shift * own;
}

/// Without group j the mean is Gbar - shift a_j, the others lie that much further from it, and H is
/// H + shift (H - H_j).
void leave_out(const CurvedProducts& p, const Sums& sums, int64_t j, LeftOut& numbers) {
  const double left = sums.n - sums.b, shift = sums.b / left;
  const double of_all = sum_of_others(p.deviations.diagonal(), p.deviations[j], j, shift);
  const double of_group = sum_of_others(p.in_group[j], p.with_group[j], j, shift);
  const double of_k = sum_of_others(sums.in_k.diagonal(), sums.in_k[j], j, shift);
  const double beside = (1 + shift) * of_all - shift * of_group - of_k;
  numbers.traces.push_back(
      trace_in_k(sums.all_squares - number(sums.squares[j]), sums.by_k[j], p.values, left) +
      trace_beside_k(beside, sums.m - 1, sums.b, left));
  const auto mean_square = [&](double of_mean, const at::Tensor& with_mean, const at::Tensor& own) {
    return of_mean - 2 * shift * number(with_mean) + shift * shift * number(own);
  };
  const double by_all = mean_square(p.mean_square, p.with_mean[j], p.deviations[j][j]);
  const double by_group = mean_square(number(p.mean_in_group[j]), p.mean_with_group[j], p.in_group[j][j]);
  numbers.mean_squares.push_back((1 + shift) * by_all - shift * by_group);
}

}  // namespace

CurvedNoise curved_noise(const CurvedProducts& p) {
  const Sums sums(p);
  const at::Tensor beside = p.deviations - sums.in_k;
  const double remainder = trace_beside_k(number(beside.trace()), sums.m, sums.b, sums.n);
  CurvedNoise found;
  found.deflated = trace_in_k(sums.all_squares, sums.all_by_k, p.values, sums.n);
  found.remainder_deviation = deviation_of(beside.diagonal(), sums.b, sums.n);
  found.plain_deviation = deviation_of(p.deviations.diagonal(), sums.b, sums.n);
  found.numbers = {sums.n, sums.b, found.deflated + remainder, p.mean_square, {}, {}};
  found.numbers.definite = false;
  found.numbers.grouping_variance =
      grouping_variance(sums.n, sums.b, sums.m, remainder, below_diagonal(beside));
  for (int64_t j = 0; j < p.groups.size(0); ++j) leave_out(p, sums, j, found.numbers);
  return found;
}

}  // namespace basin
