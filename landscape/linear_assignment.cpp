#include "landscape/linear_assignment.h"

#include <ATen/ATen.h>

#include <limits>

#include "core/error.h"
#include "core/math/nan.h"

namespace basin {
namespace {

constexpr int64_t kUnassigned = -1;

/// Rows 0 .. k-1 are assigned optimally; potentials u, v with cost - u - v >= 0 everywhere, = 0 where
/// assigned.
class Assignment {
 public:
  explicit Assignment(const at::Tensor& cost)
      : cost_(cost),
        n_(cost.size(0)),
        u_(n_, 0),
        v_(n_, 0),
        row_of_(n_, kUnassigned),
        distance_(n_),
        before_(n_),
        reached_(n_) {}

  void add_row(int64_t row) {
    std::fill(distance_.begin(), distance_.end(), kInfinity);
    std::fill(reached_.begin(), reached_.end(), false);
    int64_t at = row, column = kUnassigned;
    double length = 0;  // of the shortest path to `at`
    do {
      relax_from(at, column, length);
      column = nearest();
      reached_[column] = true;
      length = distance_[column];
      at = row_of_[column];
    } while (at != kUnassigned);
    move_potentials(row, length);
    swap_along_path(row, column);
  }

  std::vector<int64_t> columns_by_row() const {
    std::vector<int64_t> columns(n_);
    for (int64_t j = 0; j < n_; ++j) columns[row_of_[j]] = j;
    return columns;
  }

 private:
  // Paths that go on from row `at`, itself reached through `column` (kUnassigned: where the search began).
  void relax_from(int64_t at, int64_t column, double length) {
    const double* costs = cost_.const_data_ptr<double>() + at * n_;
    for (int64_t j = 0; j < n_; ++j) {
      const double through = length + costs[j] - u_[at] - v_[j];
      if (reached_[j] || through >= distance_[j]) continue;
      distance_[j] = through;
      before_[j] = column;
    }
  }

  int64_t nearest() const {
    int64_t best = kUnassigned;
    for (int64_t j = 0; j < n_; ++j)
      if (!reached_[j] && (best == kUnassigned || distance_[j] < distance_[best])) best = j;
    return best;
  }

  // Afterwards the path's edges have reduced cost 0, and no other's is negative.
  void move_potentials(int64_t row, double length) {
    u_[row] += length;
    for (int64_t j = 0; j < n_; ++j) {
      if (!reached_[j] || row_of_[j] == kUnassigned) continue;
      u_[row_of_[j]] += length - distance_[j];
      v_[j] -= length - distance_[j];
    }
  }

  void swap_along_path(int64_t row, int64_t column) {
    for (int64_t before = before_[column]; before != kUnassigned; column = before, before = before_[column])
      row_of_[column] = row_of_[before];
    row_of_[column] = row;
  }

  at::Tensor cost_;
  int64_t n_;
  std::vector<double> u_, v_;
  std::vector<int64_t> row_of_;   // of a column
  std::vector<double> distance_;  // of a column from the new row
  std::vector<int64_t> before_;   // the column before it on the shortest path
  std::vector<bool> reached_;
};

}  // namespace

std::vector<int64_t> best_assignment(const at::Tensor& score) {
  if (!at::isfinite(score).all().item<bool>())
    throw NumericError("an assignment needs finite scores; some are NaN or infinite");
  Assignment assignment(score.to(at::kCPU, at::kDouble).neg().contiguous());
  for (int64_t row = 0; row < score.size(0); ++row) assignment.add_row(row);
  return assignment.columns_by_row();
}

}  // namespace basin
