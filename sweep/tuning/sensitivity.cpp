#include "sweep/tuning/sensitivity.h"

#include "sweep/collect/rows.h"

namespace basin {
namespace {

constexpr double kTwoSided95 = 1.959963984540054;

std::vector<double> differences(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result;
  for (size_t i = 0; i < a.size(); ++i) result.push_back(a[i] - b[i]);
  return result;
}

bool is_like(const LossDifference& difference) {
  return difference.value <= kTwoSided95 * difference.standard_error;  // false where there is no error
}

void widen(std::vector<std::pair<double, double>>& span, const Candidate& candidate) {
  for (size_t i = 0; i < span.size(); ++i) {
    const double value = as_number(candidate.values[i].value);
    span[i] = {std::min(span[i].first, value), std::max(span[i].second, value)};
  }
}

}  // namespace

const char* to_string(LossComparison comparison) {
  switch (comparison) {
    case LossComparison::paired:
      return "paired";
    case LossComparison::unpaired:
      return "unpaired";
    case LossComparison::identical:
      return "identical";
    case LossComparison::diverged:
      return "diverged";
    case LossComparison::not_recorded:
      return "not_recorded";
    case LossComparison::by_gradients:
      return "by_gradients";
    case LossComparison::alone:
      return "alone";
  }
  return "";
}

LossDifference difference_to(const Score& winner, const Score& other, const std::string& select) {
  if (!std::isfinite(winner.validation_loss) || !std::isfinite(other.validation_loss))
    return {NAN, NAN, LossComparison::diverged};
  const double value = other.judged(select) - winner.judged(select);
  const std::vector<double>&ours = winner.judged_by_example(select),
        &theirs = other.judged_by_example(select);
  if (ours.size() < 2 || theirs.size() < 2) return {value, NAN, LossComparison::not_recorded};
  if (ours.size() != theirs.size()) {
    return {value, std::hypot(standard_error_of(ours), standard_error_of(theirs)), LossComparison::unpaired};
  }
  const double error = standard_error_of(differences(theirs, ours));
  return {value, error, error > 0 ? LossComparison::paired : LossComparison::identical};
}

Sensitivity sensitivity_of(const Choice& choice) {
  const Score& winner = choice.best();
  Sensitivity result;
  const bool by_examples = choice.select != kByGradients;
  const bool has_error = by_examples && winner.losses.size() > 1;
  if (has_error) result.like_winner.emplace();
  for (const TunedValue& tuned : choice.winner.values) {
    const double value = has_error ? as_number(tuned.value) : NAN;
    result.span.emplace_back(value, value);
  }
  for (size_t place = 1; place < choice.order.size(); ++place) {
    const Score& other = choice.scores[choice.order[place]];
    const LossDifference difference = difference_to(winner, other, choice.select);
    if (place == 1) {
      result.second = other.candidate.trial;
      result.to_second = by_examples ? difference : LossDifference{NAN, NAN, LossComparison::by_gradients};
      if (by_examples) result.distance = difference.value / difference.standard_error;
    }
    if (!has_error || !of_one_class(winner, other, choice) || !is_like(difference)) continue;
    result.like_winner->push_back(other.candidate.trial);
    widen(result.span, other.candidate);
  }
  if (result.second) result.status = result.to_second.status;
  return result;
}

}  // namespace basin
