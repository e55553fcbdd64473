#include "sweep/tuning/selection_file.h"

#include "core/messages.h"
#include "sweep/tuning/sensitivity.h"

namespace basin {
namespace {

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.4g}", value) : fmt::format("{}", value);
}

Settings edges_of(const Candidate& winner) {
  Settings edges;
  for (const TunedValue& tuned : winner.values) edges.emplace_back(tuned.key, to_text(tuned.edge));
  return edges;
}

bool at_edge(const Candidate& winner) {
  return std::any_of(winner.values.begin(), winner.values.end(),
                     [](const TunedValue& tuned) { return tuned.edge != Edge::none; });
}

Settings spans_of(const Candidate& winner, const Sensitivity& sensitivity) {
  Settings spans;
  for (size_t i = 0; i < winner.values.size(); ++i) {
    const auto& [low, high] = sensitivity.span[i];
    spans.emplace_back(winner.values[i].key, std::vector<double>{low, high});
  }
  return spans;
}

double like_winner(const Sensitivity& sensitivity) {
  return sensitivity.like_winner ? static_cast<double>(sensitivity.like_winner->size()) : NAN;
}

std::string tried_rows(const Choice& choice) {
  std::string text =
      "#  rate  seeds  ended  reached  overshot  validation_loss  gradients  standard_error  trial  "
      "validation_error\ntried = "
      "[\n";
  for (const Score& s : choice.scores) {
    text +=
        fmt::format("  [{}, {}, {}, {}, {}, {}, {}, {}, {}, {}],\n", to_toml(OptionValue(s.candidate.rate())),
                    s.seeds, s.ended, s.reached, s.overshot, to_toml(OptionValue(s.validation_loss)),
                    to_toml(OptionValue(s.gradients)), to_toml(OptionValue(standard_error_of(s.losses))),
                    s.candidate.trial, to_toml(OptionValue(s.validation_error)));
  }
  return text + "]\n";
}

std::string choice_toml(const Choice& choice, const Study& study) {
  const Sensitivity sensitivity = sensitivity_of(choice);
  const auto toml = [](const OptionValue& value) { return to_toml(value); };
  std::string text =
      fmt::format("\n[[choice]]\ngroup = {}\nprotocol = {}\nlearning_rate = {}\nwhen = {}\nset = {}\n",
                  toml(choice.group), toml(choice.protocol), toml(choice.winner.rate()), to_toml(choice.when),
                  to_toml(choice.winner.settings()));
  text += fmt::format("at_edge = {}\nedge = {}\n", at_edge(choice.winner), to_toml(edges_of(choice.winner)));
  if (at_edge(choice.winner)) {
    text += study.tuning.sampled ? "# within a tenth of an end of the range: a better one may lie outside\n"
                                 : "# the first or last rate of the list: a better one may lie outside\n";
  }
  if (!choice.any_ended) text += "# every run diverged or failed\n";
  text += fmt::format("validation_loss = {}\nstandard_error = {}\n", toml(choice.best().validation_loss),
                      toml(standard_error_of(choice.best().losses)));
  if (choice.select == kByErrors) {
    text += fmt::format("validation_error = {}\nvalidation_error_standard_error = {}\n",
                        toml(choice.best().validation_error), toml(standard_error_of(choice.best().errors)));
  }
  Settings second = {{"status", std::string(to_string(sensitivity.status))}};
  if (sensitivity.second) {
    const LossDifference& difference = sensitivity.to_second;
    second.insert(second.end(), {{"trial", *sensitivity.second},
                                 {"difference", difference.value},
                                 {"standard_error", difference.standard_error},
                                 {"distance", sensitivity.distance}});
  }
  text += fmt::format("second = {}\nlike_winner = {}\nspan = {}\n", to_toml(second),
                      toml(like_winner(sensitivity)), to_toml(spans_of(choice.winner, sensitivity)));
  return text + tried_rows(choice);
}

// What a reader should know before taking the winner for granted.
std::string notes_on(const Choice& choice, const Sensitivity& sensitivity) {
  std::vector<std::string> notes;
  if (choice.select == kByGradients) {
    notes.push_back(std::isfinite(choice.best().gradients)
                        ? fmt::format("{:.0f} gradients to the target", choice.best().gradients)
                        : std::string("none reached the target with every seed"));
  }
  for (size_t i = 0; i < choice.winner.values.size(); ++i) {
    const auto& [low, high] = sensitivity.span[i];
    if (low < high)
      notes.push_back(fmt::format("{} {} to {}", choice.winner.values[i].key, number(low), number(high)));
  }
  for (const TunedValue& tuned : choice.winner.values) {
    if (tuned.edge != Edge::none)
      notes.push_back(fmt::format("{} at its {} edge", tuned.key, to_text(tuned.edge)));
  }
  int64_t diverged = 0, failed = 0;
  for (const Score& score : choice.scores) {
    diverged += score.diverged;
    failed += score.failed;
  }
  if (diverged > 0) notes.push_back(fmt::format("{} diverged", diverged));
  if (failed > 0) notes.push_back(fmt::format("{} failed", failed));
  if (!choice.any_ended) notes.push_back("none came to an end");
  return fmt::format("{}", fmt::join(notes, "; "));
}

std::string second_text(const Sensitivity& sensitivity) {
  if (!sensitivity.second || !std::isfinite(sensitivity.to_second.value)) return "none";
  const std::string difference = fmt::format("{:+.4f}", sensitivity.to_second.value);
  return std::isfinite(sensitivity.distance) ? fmt::format("{} ({:.1f})", difference, sensitivity.distance)
                                             : difference;
}

}  // namespace

std::string budget_text(const Study& study, const std::vector<size_t>& candidates_by_group) {
  const TuningPlan& tuning = study.tuning;
  const auto [least, most] = std::minmax_element(candidates_by_group.begin(), candidates_by_group.end());
  std::string text =
      *least == *most ? counted(*least, "trial") : fmt::format("{} to {} trials", *least, *most);
  text += fmt::format(" at {} for each of {}, {} budget", counted(tuning.options.seeds.size(), "seed"),
                      counted(candidates_by_group.size(), "group"),
                      *least == *most ? "an equal" : "not an equal");
  if (!tuning.sampled) return text;
  text += fmt::format(": quasi-random, sampler seed {}", tuning.options.sampler_seed);
  const std::vector<Rung> rungs = tuning.rungs();
  for (size_t i = 0; rungs.size() > 1 && i < rungs.size(); ++i) {
    const std::string share =
        rungs[i].divisor > 1 ? fmt::format("1/{}", rungs[i].divisor) : std::string("all");
    text +=
        fmt::format("{} {} trials with {} of the budget", i == 0 ? "; rungs:" : ",", rungs[i].trials, share);
  }
  return text;
}

std::string selection_toml(const std::vector<Choice>& choices, const Study& study) {
  const TuningPlan& tuning = study.tuning;
  std::string text =
      "# Learning rates, and what else was searched, chosen by tuning runs; docs/study.md says how and what "
      "the keys mean.\n";
  text += tuning.options.select == kByGradients
              ? std::string("# Fewest image gradients among those that reached the target with every seed.\n")
              : fmt::format(
                    "# {}; in protocol B among those that reached the target with every seed, clean "
                    "ends first.\n",
                    tuning.options.select == kByErrors ? "Fewest errors on the validation examples"
                                                       : "Least mean validation loss");
  text += "select = " + to_toml(OptionValue(tuning.options.select)) + "\n";
  text += "select_seeds = " + to_toml(OptionValue(tuning.options.seeds)) + "\n";
  if (tuning.sampled) {
    text += fmt::format("trials = {}\nsampler_seed = {}\nhalving = {}\nrungs = {}\n", tuning.options.trials,
                        tuning.options.sampler_seed, tuning.options.halving, tuning.rungs().size());
  }
  for (const Choice& choice : choices) text += choice_toml(choice, study);
  return text;
}

std::string selection_table(const std::vector<Choice>& choices, const Study& study) {
  size_t group_width = 5, winner_width = 6;
  std::vector<size_t> counts;
  for (const Choice& choice : choices) {
    group_width = std::max(group_width, choice.group.size());
    winner_width = std::max(winner_width, to_text(choice.winner.settings()).size());
    counts.push_back(study.tuning.sampled ? static_cast<size_t>(study.tuning.options.trials)
                                          : choice.scores.size());
  }
  std::string text = budget_text(study, counts) + "\n";
  const auto line = [&](const std::string& group, const std::string& winner, const std::string& loss,
                        const std::string& second, const std::string& like, const std::string& notes) {
    std::string columns = fmt::format("{:<{}}  {:<{}}  {:>16}  {:>15}  {:>8}  {}", group, group_width, winner,
                                      winner_width, loss, second, like, notes);
    columns.erase(columns.find_last_not_of(' ') + 1);
    text += columns + "\n";
  };
  const std::string& select = study.tuning.options.select;
  const bool by_errors = select == kByErrors;
  const std::string judged = by_errors ? "validation error" : "validation loss";
  line("group", "winner", judged, "second best", "like it", "");
  for (const Choice& choice : choices) {
    const Sensitivity sensitivity = sensitivity_of(choice);
    const Score& best = choice.best();
    const double deviation = standard_error_of(best.judged_by_example(select));
    const std::string error = std::isfinite(deviation) ? fmt::format(" ± {:.4f}", deviation) : "";
    line(choice.group, to_text(choice.winner.settings()), fmt::format("{:.4f}{}", best.judged(select), error),
         second_text(sensitivity),
         sensitivity.like_winner
             ? fmt::format("{} of {}", sensitivity.like_winner->size(), choice.scores.size() - 1)
             : std::string("unknown"),
         notes_on(choice, sensitivity));
  }
  return text + judged + (by_errors ? ": share of the examples that is wrong," : "") +
         " ± standard error from the examples; second best: how much greater, in brackets in errors of the "
         "difference; like it: others within 1.96 errors, and the values that they span\n";
}

}  // namespace basin
