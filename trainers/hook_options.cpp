#include "trainers/hook_options.h"

#include "core/error.h"

namespace basin {

HookList::HookList(const HookList& other) { *this = other; }

HookList& HookList::operator=(const HookList& other) {
  if (this == &other) return *this;
  hooks_.clear();
  for (const auto& hook : other.hooks_) hooks_.push_back(hook->clone());
  return *this;
}

void HookList::drop_if(const std::function<bool(const HookOptions&)>& unwanted) {
  std::erase_if(hooks_, [&](const auto& hook) { return unwanted(*hook); });
}

void HookList::bind(OptionTable& table) {
  for (const auto& hook : hooks_) hook->bind(table);
}

void HookList::check_updates(int64_t updates) const {
  for (const auto& hook : hooks_) {
    const UpdatesNeeded needed = hook->updates_needed();
    if (needed.count <= updates) continue;
    throw ConfigError(fmt::format("{} = {} is more than the run's updates ({}): {}", needed.key, needed.count,
                                  updates, needed.why));
  }
}

HookCost HookList::cost() const {
  HookCost sum;
  for (const auto& hook : hooks_) {
    const HookCost cost = hook->cost();
    sum.evaluations += cost.evaluations;
    sum.test_passes += cost.test_passes;
    sum.checkpoints.insert(sum.checkpoints.end(), cost.checkpoints.begin(), cost.checkpoints.end());
  }
  return sum;
}

}  // namespace basin
