#include "trainers/check_rule.h"

#include "core/error.h"

namespace basin {

CheckRule::CheckRule(const TrainOptions& options)
    : matched_loss_(options.ends_by(Protocol::matched_loss)),
      target_(options.target_loss),
      interval_(options.check_every),
      levels_(options.loss_levels) {
  std::sort(levels_.begin(), levels_.end(), std::greater<>());
  levels_.erase(std::unique(levels_.begin(), levels_.end()), levels_.end());
  for (size_t i = 1; i < levels_.size(); ++i) {
    if (level_label(levels_[i]) != level_label(levels_[i - 1])) continue;
    throw ConfigError(fmt::format("loss_levels: {} and {} would share the checkpoint {}",
                                  to_toml(levels_[i - 1]), to_toml(levels_[i]), level_label(levels_[i])));
  }
}

std::string CheckRule::level_label(double level) { return fmt::format("loss-{:g}", level); }

int64_t CheckRule::next_check(int64_t examples, bool denser) const {
  return examples + (denser ? std::max<int64_t>(1, interval_ / kDenser) : interval_);
}

}  // namespace basin
