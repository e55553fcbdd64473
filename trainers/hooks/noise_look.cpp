#include "trainers/hooks/noise_look.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace basin {
namespace {

constexpr double kLeastDegrees = 1e-6;  // D is 0 where all micro-batches hold the same examples

/// Rows [first, last) of a batch: how many examples they stand for, and sum_x (times of x)^2.
struct Cut {
  double examples = 0, squares = 0;
};

Cut cut_of(const Batch& batch, int64_t first, int64_t last) {
  std::vector<std::pair<int64_t, int64_t>> rows;
  for (int64_t row = first; row < last; ++row) {
    const auto i = static_cast<size_t>(row);
    rows.emplace_back(batch.examples[i], batch.counts[i]);
  }
  std::sort(rows.begin(), rows.end());
  Cut cut;
  for (size_t i = 0; i < rows.size();) {
    double times = 0;
    const int64_t example = rows[i].first;
    for (; i < rows.size() && rows[i].first == example; ++i) times += static_cast<double>(rows[i].second);
    cut.examples += times;
    cut.squares += times * times;
  }
  return cut;
}

}  // namespace

NoiseLook look_at_noise(const Batch& batch, int64_t micro_batch, const MicroBatchNorms& norms, int64_t n) {
  const auto rows = static_cast<int64_t>(batch.examples.size());
  const Cut whole = cut_of(batch, 0, rows);
  const double size = whole.examples, set = static_cast<double>(n);
  double scatter = -size * norms.mean, degrees = -whole.squares / size;
  NoiseLook look;
  for (size_t j = 0; j < norms.parts.size(); ++j) {
    const int64_t first = static_cast<int64_t>(j) * micro_batch;
    const Cut part = cut_of(batch, first, std::min(rows, first + micro_batch));
    scatter += norms.parts[j] * size * size / part.examples;
    degrees += part.squares / part.examples;
  }
  if (norms.parts.size() < 2 || degrees < kLeastDegrees) return look;
  const double trace = scatter / degrees;
  look.micro_batches = static_cast<int64_t>(norms.parts.size());
  look.tr_sigma = trace * (set - 1) / set;
  look.g2 = norms.mean - trace * (whole.squares / (size * size) - 1 / set);
  return look;
}

}  // namespace basin
