#include "study/checkpoint_names.h"

#include "core/error.h"
#include "core/nearest.h"
#include "trainers/check_rule.h"

namespace basin {
namespace {

std::vector<std::string> level_labels(const TrainOptions& train) {
  std::vector<std::string> labels;
  for (const double level : train.loss_levels) labels.push_back(CheckRule::level_label(level));
  return labels;
}

/// All that probes.at may name; the first two of a cadence stand for the others.
std::vector<std::string> known_to(const TrainOptions& train) {
  std::vector<std::string> known = checkpoint_words();
  for (const std::string& label : train.hooks.cost().checkpoints)
    if (!contains(known, label)) known.push_back(label);
  for (const std::string& label : level_labels(train)) known.push_back(label);
  for (const int64_t update : {train.checkpoint_every, 2 * train.checkpoint_every})
    if (const std::string label = fmt::format("u{:06d}", update); can_keep(train, label))
      known.push_back(label);
  return known;
}

}  // namespace

const std::vector<std::string>& checkpoint_words() {
  static const std::vector<std::string> words = {"end", "start", "average", "loss", "every", "all"};
  return words;
}

int64_t cadence_update(const std::string& label) {
  if (label.size() < 2 || label[0] != 'u') return 0;
  const std::string digits = label.substr(1);
  if (digits.size() > 15 || digits.find_first_not_of("0123456789") != std::string::npos) return 0;
  const int64_t update = std::stoll(digits);
  return fmt::format("u{:06d}", update) == label ? update : 0;
}

bool can_keep(const TrainOptions& train, const std::string& label) {
  if (label == "start" || label == "end" || contains(train.hooks.cost().checkpoints, label)) return true;
  if (const int64_t update = cadence_update(label); update > 0) {
    const bool in_time =
        !train.ends_by(Protocol::updates) || train.branch.exists() || update <= train.updates;
    return in_time && train.checkpoint_every > 0 && update % train.checkpoint_every == 0;
  }
  return contains(level_labels(train), label);
}

void check_probed_at(const std::vector<std::string>& at, const TrainOptions& train) {
  for (const std::string& label : at) {
    if (!contains(checkpoint_words(), label) && !can_keep(train, label))
      throw ConfigError(unknown_name("checkpoint in probes.at", label, known_to(train)));
  }
  if (contains(at, std::string("every")) && train.checkpoint_every == 0)
    throw ConfigError("probes.at = \"every\" needs checkpoint_every > 0, in updates");
  if (contains(at, std::string("average")) && !can_keep(train, "average"))
    throw ConfigError("probes.at = \"average\" needs weight_average > 0");
}

}  // namespace basin
