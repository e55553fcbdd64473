#include "study/checkpoint_names.h"

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "core/nearest.h"
#include "trainers/check_rule.h"

namespace basin {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

const std::vector<std::string>& checkpoint_words() {
  static const std::vector<std::string> words = {"end", "start", "average", "loss", "every", "all"};
  return words;
}

bool is_cadence(const std::string& label) {
  return label.size() > 1 && label[0] == 'u' && std::isdigit(static_cast<unsigned char>(label[1]));
}

void check_probed_at(const std::vector<std::string>& at, const TrainOptions& train) {
  std::vector<std::string> known = checkpoint_words();
  const std::vector<std::string> of_hooks = train.hooks.cost().checkpoints;
  known.insert(known.end(), of_hooks.begin(), of_hooks.end());
  const CheckRule rule(train);
  for (const double level : rule.levels()) known.push_back(CheckRule::level_label(level));
  for (const std::string& label : at) {
    if (!is_cadence(label) && !contains(known, label))
      throw ConfigError(unknown_name("checkpoint in probes.at", label, known) +
                        ", or an update's as u000400");
  }
  if (contains(at, "every") && train.checkpoint_every == 0)
    throw ConfigError("probes.at = \"every\" needs checkpoint_every > 0, in updates");
  if (contains(at, "average") && !contains(of_hooks, "average"))
    throw ConfigError("probes.at = \"average\" needs weight_average > 0");
}

}  // namespace basin
