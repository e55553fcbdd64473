#include "landscape/point_evaluator.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/error.h"
#include "models/running_statistics.h"

namespace basin {
namespace {

// The standard error of the mean of n numbers with these sums.
double standard_error(double sum, double sum_of_squares, double n) {
  const double spread = sum_of_squares - sum * sum / n;
  return n > 1 ? std::sqrt(std::max(0.0, spread) / (n * (n - 1))) : std::numeric_limits<double>::quiet_NaN();
}

/// Every rank's micro-batches, in their order.
at::Tensor over_ranks(const Objective& objective, const std::vector<at::Tensor>& mine) {
  if (objective.ranks().is_alone()) return at::cat(mine);
  const at::Tensor whole = at::zeros({objective.examples()}, at::kDouble);
  const int64_t first = objective.micro_batches_here().first * objective.micro_batch();
  if (!mine.empty()) {
    const at::Tensor part = at::cat(mine);
    whole.narrow(0, first, part.size(0)).copy_(part);
  }
  objective.ranks().put_together(whole);
  return whole;
}

}  // namespace

StatisticsMode statistics_mode(const std::string& name) {
  if (name == "reset") return StatisticsMode::reset;
  if (name == "interpolate") return StatisticsMode::interpolate;
  if (name == "frozen") return StatisticsMode::frozen;
  throw ConfigError(
      fmt::format("unknown mode of statistics \"{}\"; known: reset, interpolate, frozen", name));
}

SetScore score(const LabelledSet& set, bool keep_examples) {
  const at::NoGradGuard no_grad;
  Objective& objective = *set.objective;
  const int64_t n = objective.examples();
  double sum = 0, sum_of_squares = 0, correct = 0;
  std::vector<at::Tensor> losses, hits;
  const Share here = objective.micro_batches_here();
  for (int64_t k = here.first; k < here.last; ++k) {
    const int64_t first = k * objective.micro_batch(), count = std::min(objective.micro_batch(), n - first);
    const at::Tensor logits = objective.logits(first, count);
    const at::Tensor loss = objective.losses(logits, first, count);
    const at::Tensor hit = example_hits(logits, set.labels.narrow(0, first, count));
    sum += loss.sum(at::kDouble).item<double>();
    sum_of_squares += loss.to(at::kDouble).square().sum().item<double>();
    correct += hit.sum().item<double>();
    if (!keep_examples) continue;
    losses.push_back(loss.to(at::kCPU, at::kDouble));
    hits.push_back(hit.cpu());
  }
  for (double* mine : {&sum, &sum_of_squares, &correct}) *mine = objective.ranks().sum(*mine);
  if (keep_examples)
    for (std::vector<at::Tensor>* mine : {&losses, &hits}) *mine = {over_ranks(objective, *mine)};
  SetScore score;
  if (!std::isfinite(sum)) return score;
  const auto size = static_cast<double>(n);
  score.loss = sum / size;
  score.loss_error = standard_error(sum, sum_of_squares, size);
  score.accuracy = correct / size;
  if (keep_examples) {
    score.losses = losses[0];
    score.correct = hits[0];
  }
  return score;
}

PointEvaluator::PointEvaluator(LabelledSet train, LabelledSet test, const Setup& setup)
    : train_(std::move(train)),
      test_(std::move(test)),
      setup_(setup),
      states_(train_.objective->model()),
      origin_(states_.gather()) {}

PointEvaluator::~PointEvaluator() { states_.scatter(origin_, true); }

void PointEvaluator::place(const at::Tensor& state) {
  if (setup_.statistics == StatisticsMode::frozen) states_.scatter(origin_, true);
  states_.scatter(state, setup_.statistics == StatisticsMode::interpolate);
  if (setup_.statistics != StatisticsMode::reset) return;
  Objective& train = *train_.objective;
  Model& model = train.model();
  const NormMode mode = model.norm_mode();
  const int64_t ghost_batch = model.ghost_batch();
  const auto forward = [&](int64_t first, int64_t count) { train.logits(first, count); };
  estimate_running_statistics(model, train.examples(), forward, train.micro_batch(), setup_.ghost_batch,
                              train.ranks());
  model.set_norm_mode(mode, ghost_batch);
}

PointScore PointEvaluator::at(const at::Tensor& state, bool keep_examples) {
  place(state);
  PointScore found;
  found.train = score(train_, keep_examples);
  if (has_test()) found.test = score(test_, keep_examples);
  found.finite = std::isfinite(found.train.loss) && (!has_test() || std::isfinite(found.test.loss));
  return found;
}

}  // namespace basin
