#include "forecast/comparison.h"

#include <set>
#include <sstream>
#include <vector>

namespace basin {
namespace {

using Keys = std::set<std::string>;

/// What is looked at on the way, budgets of other protocols, and how a pass is divided: none changes an update.
const Keys kHarmless = {"micro_batch",
                        "duplicates",
                        "epochs",
                        "updates",
                        "regime_batch",
                        "loss_levels",
                        "evaluate_every",
                        "checkpoint_every",
                        "layers_every",
                        "batch_factor",
                        "batch_rate_power",
                        "base_batch",
                        "outcomes_at_levels",
                        "noise_scale_every",
                        "noise_scale_beta",
                        "noise_scale_compat",
                        "ledger_every",
                        "ledger_tolerance",
                        "test_time_augmentation"};
/// What a forecast takes into account by itself.
const Keys kOfSize = {"batch_size", "max_gradients", "check_every", "schedule", "schedule_unit",
                      "warmup",     "warmup_rule",   "warmup_from", "power",    "final_factor",
                      "horizon",    "milestones",    "step_factor"};
const Keys kOfTrial = {"learning_rate", "seed"};

/// Lines of the identity's options for which `wanted` holds.
template <class Wanted>
std::string text_of(const RunOptions& options, const Wanted& wanted) {
  std::string text;
  for (const Option& option : options.defining_table())
    if (option.traits.role == OptionRole::identity && wanted(option.key))
      text += option.key + " = " + to_toml(option.get()) + "\n";
  return text;
}

bool is_of_arm(const std::string& key, const RunOptions& options) {
  return key == "optimizer" || key.rfind(options.optimizer + ".", 0) == 0;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

std::string setting_text(const RunOptions& options) {
  return text_of(options, [&](const std::string& key) {
    return !kHarmless.count(key) && !kOfSize.count(key) && !kOfTrial.count(key) && !is_of_arm(key, options);
  });
}

std::string arm_text(const RunOptions& options) {
  return text_of(options, [&](const std::string& key) { return is_of_arm(key, options); });
}

std::string cell_text(const RunOptions& options) {
  return text_of(options,
                 [&](const std::string& key) { return !kHarmless.count(key) && !kOfTrial.count(key); });
}

std::string compared_difference(const std::string& a, const std::string& b) {
  const std::vector<std::string> first = lines_of(a), second = lines_of(b);
  for (size_t i = 0; i < first.size() && i < second.size(); ++i) {
    if (first[i] == second[i]) continue;
    const size_t at = first[i].find(" = ");
    const size_t other = second[i].find(" = ");
    return first[i].substr(0, at) + " (" + first[i].substr(at + 3) + " and " + second[i].substr(other + 3) +
           ")";
  }
  return "their options";
}

}  // namespace basin
