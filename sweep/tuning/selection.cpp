#include "sweep/tuning/selection.h"

#include <tuple>

#include "core/error.h"
#include "core/math/statistics.h"
#include "io/run_file.h"
#include "io/status_file.h"
#include "sweep/collect/rows.h"

namespace basin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Example by example, the mean over seeds; empty unless all have the same examples.
std::vector<double> mean_by_example(const std::vector<const Trial*>& trials,
                                    std::vector<double> Trial::*numbers) {
  std::vector<double> mean((trials.front()->*numbers).size(), 0.0);
  for (const Trial* trial : trials) {
    const std::vector<double>& of_trial = trial->*numbers;
    if (of_trial.size() != mean.size()) return {};
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += of_trial[i];
  }
  for (double& number : mean) number /= static_cast<double>(trials.size());
  return mean;
}

// Divided once: sums of whole numbers are exact, so that those that are equal stay equal. Infinite unless every seed ended.
template <class Number>
double mean_over_seeds(const std::vector<const Trial*>& trials, const Number& number_of) {
  double sum = 0;
  for (const Trial* trial : trials) sum += trial->ended() ? number_of(*trial) : kInfinity;
  return std::isnan(sum) ? kInfinity : sum / static_cast<double>(trials.size());
}

// A share of the examples, 1 less the accuracy, is one of a whole number of them but for its rounding. For texts, whose
// accuracy is one of their tokens, it needn't be: it stays as it is.
double wrong_examples(const Trial& trial) {
  const double wrong = trial.validation_error * static_cast<double>(trial.validation_examples);
  const double whole = std::round(wrong);
  return std::abs(wrong - whole) < 1e-6 ? whole : wrong;
}

double error_over_seeds(const std::vector<const Trial*>& trials) {
  const int64_t examples = trials.front()->validation_examples;
  const auto has_as_many = [&](const Trial* trial) { return trial->validation_examples == examples; };
  if (examples > 0 && std::all_of(trials.begin(), trials.end(), has_as_many))
    return mean_over_seeds(trials, wrong_examples) / static_cast<double>(examples);
  return mean_over_seeds(trials, [](const Trial& trial) { return trial.validation_error; });
}

Score score_of(const std::vector<const Trial*>& trials) {
  Score score;
  score.candidate = trials.front()->candidate;
  score.seeds = static_cast<int64_t>(trials.size());
  for (const Trial* trial : trials) {
    score.ended += trial->ended();
    score.reached += trial->status == RunState::finished;
    score.overshot += trial->overshot;
    score.diverged += trial->status == RunState::diverged;
    score.gradients += trial->gradients;
  }
  score.gradients /= static_cast<double>(score.seeds);
  score.failed = score.seeds - score.ended - score.diverged;
  score.validation_loss = mean_over_seeds(trials, [](const Trial& trial) { return trial.validation_loss; });
  score.validation_error = error_over_seeds(trials);
  if (score.reached < score.seeds) score.gradients = kInfinity;
  if (score.ended == score.seeds) {
    score.losses = mean_by_example(trials, &Trial::losses);
    score.errors = mean_by_example(trials, &Trial::errors);
  }
  return score;
}

bool has_reached(const Score& score, const Choice& choice) {
  return protocol_named(choice.protocol) == Protocol::matched_loss && std::isfinite(score.gradients);
}

// What is looked at before the loss; less is better.
std::tuple<bool, double, int64_t> class_of(const Score& score, const Choice& choice) {
  if (!has_reached(score, choice)) return {protocol_named(choice.protocol) == Protocol::matched_loss, 0, 0};
  return {false, choice.select == kByGradients ? score.gradients : 0, score.overshot};
}

bool better(const Score& a, const Score& b, const Choice& choice) {
  const auto key = [&](const Score& s) {
    return std::make_tuple(class_of(s, choice), choice.select == kByErrors ? s.validation_error : 0.0,
                           s.validation_loss, has_reached(s, choice) ? s.gradients : 0.0, s.candidate.rate(),
                           s.candidate.trial);
  };
  return key(a) < key(b);
}

Choice choose_one(const std::vector<const Trial*>& trials, const std::string& select) {
  std::map<std::pair<double, int64_t>, std::vector<const Trial*>> by_candidate;
  for (const Trial* trial : trials)
    by_candidate[{trial->candidate.rate(), trial->candidate.trial}].push_back(trial);
  const Trial& first = *trials.front();
  Choice choice;
  choice.group = first.group;
  choice.protocol = first.protocol;
  choice.select = select;
  choice.when = first.when;
  for (const auto& [candidate, runs] : by_candidate) {
    choice.order.push_back(choice.scores.size());
    choice.scores.push_back(score_of(runs));
  }
  std::sort(choice.order.begin(), choice.order.end(),
            [&](size_t a, size_t b) { return better(choice.scores[a], choice.scores[b], choice); });
  choice.winner = choice.best().candidate;
  choice.any_ended = std::isfinite(choice.best().validation_loss);
  return choice;
}

}  // namespace

std::vector<Choice> choose(const std::vector<Trial>& trials, const std::string& select) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const Trial*>> by_group;
  for (const Trial& trial : trials) {
    if (!by_group.count(trial.group)) order.push_back(trial.group);
    by_group[trial.group].push_back(&trial);
  }
  std::vector<Choice> choices;
  for (const std::string& group : order) choices.push_back(choose_one(by_group[group], select));
  return choices;
}

double standard_error_of(const std::vector<double>& by_example) {
  return by_example.size() > 1 ? mean_of(by_example).standard_error
                               : std::numeric_limits<double>::quiet_NaN();
}

bool of_one_class(const Score& a, const Score& b, const Choice& choice) {
  return class_of(a, choice) == class_of(b, choice);
}

Entrants best_of(const std::vector<Choice>& choices, int64_t count) {
  Entrants best;
  for (const Choice& choice : choices) {
    for (size_t i = 0; i < choice.order.size() && static_cast<int64_t>(i) < count; ++i)
      best[choice.group].insert(choice.scores[choice.order[i]].candidate.trial);
  }
  return best;
}

Trial read_trial(const Cell& cell, const std::string& run_folder) {
  Trial trial;
  trial.group = cell.group;
  trial.run_id = cell.run_id;
  trial.protocol = cell.options.train.protocol;
  trial.when = cell.when;
  trial.candidate = cell.candidate;
  trial.rung = cell.rung;
  trial.seed = cell.options.train.seed;
  try {
    trial.status = read_status(run_folder + "/status.json").status;
    if (!is_final(trial.status)) return trial;
    const RunRecord record = read_run_file(run_folder + "/run.h5");
    for (const auto& [name, value] : record.summary) {
      if (name == "validation_loss" && trial.ended()) trial.validation_loss = as_number(value);
      if (name == "validation_acc" && trial.ended()) trial.validation_error = 1 - as_number(value);
      if (name == "gradients") trial.gradients = as_number(value);
      if (name == "overshot") trial.overshot = as_number(value) != 0;
    }
    for (const auto& [name, value] : record.header.data)
      if (name == "n_validation") trial.validation_examples = static_cast<int64_t>(as_number(value));
    const auto outcomes = record.outcomes.find("validation");
    if (outcomes != record.outcomes.end()) {
      trial.losses.assign(outcomes->second.loss.begin(), outcomes->second.loss.end());
      for (const uint8_t correct : outcomes->second.correct) trial.errors.push_back(correct ? 0 : 1);
    }
  } catch (const IoError&) {
    trial.status = RunState::failed;
  }
  return trial;
}

Winners winners_of(const std::vector<Choice>& choices) {
  Winners winners;
  for (const Choice& choice : choices) winners[choice.group] = choice.winner.settings();
  return winners;
}

}  // namespace basin
