#include "apps/selection.h"

#include <tuple>

#include "apps/sweep_rows.h"
#include "core/error.h"
#include "io/run_file.h"
#include "io/status_file.h"

namespace basin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

RateScore score_of(double rate, const std::vector<const RateTrial*>& trials) {
  RateScore score;
  score.rate = rate;
  score.seeds = static_cast<int64_t>(trials.size());
  for (const RateTrial* trial : trials) {
    const bool ended = trial->status == "finished" || trial->status == "target_not_reached";
    score.ended += ended;
    score.reached += trial->status == "finished";
    score.overshot += trial->overshot;
    score.validation_loss +=
        (ended ? trial->validation_loss : kInfinity) / static_cast<double>(trials.size());
    score.gradients += trial->gradients / static_cast<double>(trials.size());
  }
  if (std::isnan(score.validation_loss)) score.validation_loss = kInfinity;
  if (score.reached < score.seeds) score.gradients = kInfinity;
  return score;
}

// Less is better.
bool better(const RateScore& a, const RateScore& b, bool matched_loss) {
  const auto key = [&](const RateScore& s) {
    const bool reached = matched_loss && std::isfinite(s.gradients);
    return std::make_tuple(matched_loss && !reached, reached ? s.overshot : 0, s.validation_loss,
                           reached ? s.gradients : 0.0, s.rate);
  };
  return key(a) < key(b);
}

RateChoice choose(const std::string& group, const std::vector<const RateTrial*>& trials) {
  std::map<double, std::vector<const RateTrial*>> by_rate;
  for (const RateTrial* trial : trials) by_rate[trial->rate].push_back(trial);
  RateChoice choice;
  choice.group = group;
  choice.protocol = trials.front()->protocol;
  for (const auto& [rate, same_rate] : by_rate) choice.scores.push_back(score_of(rate, same_rate));
  const bool matched_loss = choice.protocol == "B";
  const RateScore* best = &choice.scores.front();
  for (const RateScore& score : choice.scores) {
    if (better(score, *best, matched_loss)) best = &score;
  }
  choice.rate = best->rate;
  choice.any_ended = std::isfinite(best->validation_loss);
  choice.at_edge = best == &choice.scores.front() || best == &choice.scores.back();
  return choice;
}

}  // namespace

std::vector<RateChoice> choose_rates(const std::vector<RateTrial>& trials) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const RateTrial*>> by_group;
  for (const RateTrial& trial : trials) {
    if (!by_group.count(trial.group)) order.push_back(trial.group);
    by_group[trial.group].push_back(&trial);
  }
  std::vector<RateChoice> choices;
  for (const std::string& group : order) choices.push_back(choose(group, by_group[group]));
  return choices;
}

RateTrial read_trial(const Cell& cell, const std::string& run_folder) {
  RateTrial trial;
  trial.group = cell.group;
  trial.run_id = cell.run_id;
  trial.protocol = cell.options.train.protocol;
  trial.rate = cell.options.train.learning_rate;
  trial.seed = cell.options.train.seed;
  try {
    trial.status = read_status(run_folder + "/status.json").status;
    if (trial.status != "finished" && trial.status != "target_not_reached") return trial;
    for (const auto& [name, value] : read_run_file(run_folder + "/run.h5").summary) {
      if (name == "validation_loss") trial.validation_loss = as_number(value);
      if (name == "gradients") trial.gradients = as_number(value);
      if (name == "overshot") trial.overshot = as_number(value) != 0;
    }
  } catch (const IoError&) {
    trial.status = "failed";
  }
  return trial;
}

ChosenRates chosen_rates(const std::vector<RateChoice>& choices) {
  ChosenRates rates;
  for (const RateChoice& choice : choices) rates[choice.group] = choice.rate;
  return rates;
}

std::string selection_toml(const std::vector<RateChoice>& choices, const Study& study) {
  std::string text =
      "# Learning rates chosen by tuning runs at the selection seeds; docs/study.md says how.\n"
      "# Least mean validation loss; in protocol B among the rates that reached the target with every seed, "
      "clean ends first.\n";
  text += "select_seeds = " + to_toml(OptionValue(study.selection.seeds)) + "\n";
  for (const RateChoice& choice : choices) {
    text +=
        fmt::format("\n[[choice]]\ngroup = {}\nprotocol = {}\nlearning_rate = {}\nat_edge = {}\n",
                    to_toml(choice.group), to_toml(choice.protocol), to_toml(choice.rate), choice.at_edge);
    if (choice.at_edge) text += "# the first or last rate of the list: a better one may lie outside\n";
    if (!choice.any_ended) text += "# every rate diverged or failed\n";
    text += "#  rate  seeds  ended  reached  overshot  validation_loss  gradients\ntried = [\n";
    for (const RateScore& s : choice.scores) {
      text += fmt::format("  [{}, {}, {}, {}, {}, {}, {}],\n", to_toml(s.rate), s.seeds, s.ended, s.reached,
                          s.overshot, to_toml(s.validation_loss), to_toml(s.gradients));
    }
    text += "]\n";
  }
  return text;
}

}  // namespace basin
