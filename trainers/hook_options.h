// defines: HookOptions, what is known of a hook before there is a run; HookList, the hooks that a run may have.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/options.h"

namespace basin {

struct BatchPlan;
struct HookSetup;
struct TrainOptions;
class UpdateHook;

/// What a hook's options are checked against.
struct HookCheck {
  const TrainOptions& train;
  const BatchPlan& plan;  // as hooks want batches cut: group, passes and random_weights alone
  double overlap;         // Optimizer::overlap()
  bool has_batch_statistics;
  bool gradients_elsewhere = false;  // OptimizerTraits
};

/// A run of fewer updates is refused: "key = count is more than the run's updates (7): why".
struct UpdatesNeeded {
  int64_t count = 0;
  std::string key, why;
};

/// What a hook adds to a run besides its updates.
struct HookCost {
  int64_t evaluations = 0;               // of all splits, at the end
  int64_t test_passes = 0;               // over the test split, at the end
  std::vector<std::string> checkpoints;  // that it keeps at the end
};

/// The options of one hook and what follows from them alone; made of the hook's class by hook_entry(), trainers/hooks/registry.h.
/// Where the options switch it off, nothing follows and make() gives null.
class HookOptions {
 public:
  virtual ~HookOptions() = default;
  virtual std::unique_ptr<HookOptions> clone() const = 0;
  virtual void bind(OptionTable& table) = 0;
  /// ConfigError where the run's other options exclude this hook.
  virtual void check(const HookCheck& run) const = 0;
  virtual UpdatesNeeded updates_needed() const = 0;
  /// Says how batches are to be cut for it.
  virtual void plan(BatchPlan& plan) const = 0;
  virtual HookCost cost() const = 0;
  virtual std::unique_ptr<UpdateHook> make(const HookSetup& setup) const = 0;
};

template <class O>
struct HookOptionsOf : HookOptions {
  O value;
};

/// Copied by value. In the order in which their keys are bound and in which they act at every moment (trainers/update_hook.h).
class HookList {
 public:
  HookList() = default;
  HookList(const HookList& other);
  HookList& operator=(const HookList& other);
  HookList(HookList&&) = default;
  HookList& operator=(HookList&&) = default;
  ~HookList() = default;

  void add(std::unique_ptr<HookOptions> options) { hooks_.push_back(std::move(options)); }
  void drop_if(const std::function<bool(const HookOptions&)>& unwanted);
  const std::vector<std::unique_ptr<HookOptions>>& all() const { return hooks_; }

  void bind(OptionTable& table);
  /// ConfigError where a run of so many updates is too short for one of them.
  void check_updates(int64_t updates) const;
  /// The sum of all.
  HookCost cost() const;

  /// The options of type O; std::logic_error where no hook has such.
  template <class O>
  O& of() {
    for (const auto& hook : hooks_)
      if (auto* options = dynamic_cast<HookOptionsOf<O>*>(hook.get())) return options->value;
    throw std::logic_error("no hook with these options in this list");
  }
  template <class O>
  const O& of() const {
    return const_cast<HookList*>(this)->of<O>();
  }

 private:
  std::vector<std::unique_ptr<HookOptions>> hooks_;
};

}  // namespace basin
