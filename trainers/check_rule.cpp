#include "trainers/check_rule.h"

namespace basin {

CheckRule::CheckRule(const TrainOptions& options)
    : matched_loss_(options.protocol == "B"), target_(options.target_loss), interval_(options.check_every),
      levels_(options.loss_levels) {
  std::sort(levels_.begin(), levels_.end(), std::greater<>());
  levels_.erase(std::unique(levels_.begin(), levels_.end()), levels_.end());
}

int64_t CheckRule::next_check(int64_t gradients, double train_loss) const {
  const bool near = matched_loss_ && train_loss < kNear * target_;
  return gradients + (near ? std::max<int64_t>(1, interval_ / kDenser) : interval_);
}

}  // namespace basin
