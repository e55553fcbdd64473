#include "sweep/tuning/file.h"

#include "core/math/nan.h"
#include "io/schema.h"
#include "sweep/collect/columns.h"
#include "sweep/tuning/sensitivity.h"

namespace basin {
namespace {

const Meanings& tuning_meanings() {
  static const Meanings table = with_run_meanings({
      {"group", {"", "what is tuned together: the axes' values but for seed and learning rate", "group"}},
      {"trial",
       {"1", "number of the candidate, from 0; the same point of the unit cube in every group", "trial"}},
      {"rung", {"1", "rung of successive halving, from 0; the last has the whole budget", "rung"}},
      {"budget", {"1", "share of the run's budget (epochs, updates or cap) in this rung", "rung"}},
      {"seed", {"1", "training seed", "seed"}},
      {"validation_loss_error",
       {"nat", "standard error of the validation loss from its examples alone",
        "standard-error-of-examples"}},
      {"validation_error", {"1", "share of the validation examples that is wrong", "share-of-errors"}},
      {"place", {"1", "place in the order of the choice, 1 the best", "selection"}},
      {"promoted", {"", "goes on to the next rung, or has won", "selection"}},
      {"seeds", {"1", "runs", "selection"}},
      {"ended", {"1", "runs that came to an end, the target or the cap", "selection"}},
      {"reached", {"1", "runs that finished: under protocol B at or below the target", "selection"}},
      {"overshot_runs", {"1", "runs that fell below 0.8 x target", "selection"}},
      {"diverged", {"1", "runs that diverged; their loss counts as infinite", "selection"}},
      {"failed", {"1", "runs that failed; their loss counts as infinite", "selection"}},
      {"difference", {"nat", "validation loss less that of the best of this rung", "loss-difference"}},
      {"difference_error", {"nat", "standard error of the difference from the examples", "loss-difference"}},
      {"difference_status", {"", "paired, unpaired, identical, not_recorded or diverged", "loss-difference"}},
      {"trials", {"1", "candidates tried, the same number in every group where they are searched", "budget"}},
      {"any_ended",
       {"", "whether any candidate came to an end; else the smallest rate was taken", "selection"}},
      {"second_trial", {"1", "candidate that would have won without the winner", "sensitivity"}},
      {"second_difference",
       {"nat", "its validation loss (by errors: share of errors) less the winner's", "loss-difference"}},
      {"second_difference_error",
       {"nat", "standard error of that difference from the examples", "loss-difference"}},
      {"second_distance", {"1", "that difference in units of its error", "sensitivity"}},
      {"second_status",
       {"", "paired, unpaired, identical, not_recorded, diverged, by_gradients or alone", "sensitivity"}},
      {"like_winner", {"1", "other candidates within 1.96 errors of the winner", "sensitivity"}},
  });
  return table;
}

Meaning meaning_of(const std::string& column, const std::string& select) {
  if (const auto it = tuning_meanings().find(column); it != tuning_meanings().end()) {
    Meaning meaning = it->second;
    if (select == kByErrors && column.rfind("second_difference", 0) == 0) meaning.units = "1";
    return meaning;
  }
  const auto ends_with = [&](const std::string& end) {
    return column.size() > end.size() && column.compare(column.size() - end.size(), end.size(), end) == 0;
  };
  if (column.rfind("unit.", 0) == 0)
    return {"1", "place of " + column.substr(5) + " in its range, 0 to 1 on the range's scale", "unit-cube"};
  if (ends_with(".edge"))
    return {"", "low or high: within a tenth of that end of its range, or the first or last of its list",
            "edge"};
  if (ends_with(".low")) return {"", "least value among the winner and those like it", "sensitivity"};
  if (ends_with(".high")) return {"", "greatest value among the winner and those like it", "sensitivity"};
  return {"", "option " + column, "option"};
}

void add(ColumnRow& row, const ColumnRow& more) { row.insert(row.end(), more.begin(), more.end()); }

ColumnRow run_row(const Trial& trial, const std::vector<Rung>& rungs) {
  ColumnRow row = {{"run_id", trial.run_id},
                   {"group", trial.group},
                   {"trial", trial.candidate.trial},
                   {"rung", static_cast<int64_t>(trial.rung)},
                   {"budget", 1.0 / static_cast<double>(rungs.at(trial.rung).divisor)},
                   {"seed", trial.seed}};
  add(row, trial.when);
  add(row, trial.candidate.settings());
  for (const TunedValue& tuned : trial.candidate.values) row.emplace_back("unit." + tuned.key, tuned.unit);
  add(row, {{"status", std::string(to_string(trial.status))},
            {"validation_loss", trial.ended() ? trial.validation_loss : kNaN},
            {"validation_loss_error", trial.ended() ? standard_error_of(trial.losses) : kNaN},
            {"validation_error", trial.ended() ? trial.validation_error : kNaN},
            {"gradients", trial.gradients},
            {"overshot", trial.overshot}});
  return row;
}

ColumnRow score_row(const Choice& choice, size_t place, size_t rung, const std::vector<Rung>& rungs) {
  const Score& score = choice.scores[choice.order[place]];
  const LossDifference difference = difference_to(choice.best(), score);
  const bool is_last = rung + 1 == rungs.size();
  const int64_t next = is_last ? 1 : rungs[rung + 1].trials;
  ColumnRow row = {{"group", choice.group},
                   {"trial", score.candidate.trial},
                   {"rung", static_cast<int64_t>(rung)},
                   {"budget", 1.0 / static_cast<double>(rungs[rung].divisor)}};
  add(row, choice.when);
  add(row, score.candidate.settings());
  add(row, {{"place", static_cast<int64_t>(place) + 1},
            {"promoted", static_cast<int64_t>(place) < next},
            {"seeds", score.seeds},
            {"ended", score.ended},
            {"reached", score.reached},
            {"overshot_runs", score.overshot},
            {"diverged", score.diverged},
            {"failed", score.failed},
            {"validation_loss", score.validation_loss},
            {"validation_loss_error", standard_error_of(score.losses)},
            {"validation_error", score.validation_error},
            {"gradients", score.gradients},
            {"difference", difference.value},
            {"difference_error", difference.standard_error},
            {"difference_status", std::string(to_string(difference.status))}});
  return row;
}

ColumnRow winner_row(const Choice& choice, int64_t trials, int64_t diverged, int64_t failed) {
  const Sensitivity sensitivity = sensitivity_of(choice);
  ColumnRow row = {{"group", choice.group}, {"trial", choice.winner.trial}};
  add(row, choice.when);
  add(row, choice.winner.settings());
  for (size_t i = 0; i < choice.winner.values.size(); ++i) {
    const TunedValue& tuned = choice.winner.values[i];
    add(row, {{tuned.key + ".edge", to_text(tuned.edge)},
              {tuned.key + ".low", sensitivity.span[i].first},
              {tuned.key + ".high", sensitivity.span[i].second}});
  }
  const double like = sensitivity.like_winner ? static_cast<double>(sensitivity.like_winner->size()) : kNaN;
  add(row, {{"validation_loss", choice.best().validation_loss},
            {"validation_loss_error", standard_error_of(choice.best().losses)},
            {"validation_error", choice.best().validation_error},
            {"second_trial", sensitivity.second ? static_cast<double>(*sensitivity.second) : kNaN},
            {"second_difference", sensitivity.to_second.value},
            {"second_difference_error", sensitivity.to_second.standard_error},
            {"second_distance", sensitivity.distance},
            {"second_status", std::string(to_string(sensitivity.status))},
            {"like_winner", like},
            {"trials", trials},
            {"diverged", diverged},
            {"failed", failed},
            {"any_ended", choice.any_ended}});
  return row;
}

std::vector<Trial> of_rung(const std::vector<Trial>& trials, size_t rung) {
  std::vector<Trial> found;
  std::copy_if(trials.begin(), trials.end(), std::back_inserter(found),
               [&](const Trial& trial) { return trial.rung == rung; });
  return found;
}

struct GroupCounts {
  std::set<int64_t> trials;
  int64_t diverged = 0, failed = 0;
};

std::map<std::string, GroupCounts> count_by_group(const std::vector<Trial>& trials) {
  std::map<std::string, GroupCounts> counts;
  for (const Trial& trial : trials) {
    GroupCounts& group = counts[trial.group];
    group.trials.insert(trial.candidate.trial);
    group.diverged += trial.status == RunState::diverged;
    group.failed += trial.status != RunState::diverged && !trial.ended();
  }
  return counts;
}

void write_attributes(h5::File& file, const Study& study) {
  const TuningPlan& tuning = study.tuning;
  file.set_attribute("default", std::string("scores"));
  file.set_attribute("study", study.text);
  file.set_attribute("candidates", std::string(tuning.sampled ? "ranges" : "list"));
  file.set_attribute("select", tuning.options.select);
  file.set_attribute("seeds", tuning.options.seeds);
  if (!tuning.sampled) return;
  file.set_attribute("trials", tuning.options.trials);
  file.set_attribute("sampler",
                     std::string(tuning.options.sampler_seed == 0 ? "halton" : "scrambled halton"));
  file.set_attribute("sampler_seed", tuning.options.sampler_seed);
  file.set_attribute("halving", tuning.options.halving);
}

}  // namespace

void write_tune_file(const std::string& path, const Study& study, const std::vector<Trial>& trials) {
  const std::vector<Rung> rungs = study.tuning.rungs();
  const std::string& select = study.tuning.options.select;
  h5::File file = create_schema_file(path, kTuneSchema);
  write_attributes(file, study);
  std::vector<ColumnRow> runs, scores, winners;
  for (const Trial& trial : trials) runs.push_back(run_row(trial, rungs));
  for (size_t rung = 0; rung < rungs.size(); ++rung) {
    for (const Choice& choice : choose(of_rung(trials, rung), select)) {
      for (size_t place = 0; place < choice.order.size(); ++place)
        scores.push_back(score_row(choice, place, rung, rungs));
    }
  }
  const std::map<std::string, GroupCounts> counts = count_by_group(trials);
  for (const Choice& choice : choose(of_rung(trials, rungs.size() - 1), select)) {
    const GroupCounts& group = counts.at(choice.group);
    winners.push_back(
        winner_row(choice, static_cast<int64_t>(group.trials.size()), group.diverged, group.failed));
  }
  const auto meaning = [&](const std::string& column) { return meaning_of(column, select); };
  write_table(file, "runs", "one row per tuning run", "run_id", runs, meaning);
  write_table(file, "scores", "one row per candidate of a group at a rung, means over seeds", "group", scores,
              meaning);
  write_table(file, "winners", "one row per group: its winner and how sure it is", "group", winners, meaning);
  file.save();
}

}  // namespace basin
