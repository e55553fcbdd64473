// defines: Milestones, the checkpoints that a run keeps on its way.
#pragma once

#include <memory>
#include <optional>

#include "trainers/check_rule.h"
#include "trainers/update_hook.h"

namespace basin {

/// "u000100" after every checkpoint_every updates, with running statistics of then, and "loss-1.5" at the first check of the
/// training loss at or below each of loss_levels (trainers/check_rule.h), with `level` and `level_overshot` in its progress.
/// Both keys stand in TrainOptions: levels make checks, and where keys stand is part of the names of runs. So does the number of
/// levels passed in RunProgress, which every checkpoint has. Cost: with batch statistics a forward pass over the training set each.
/// With outcomes_at_levels also the outcomes of the test images one by one at each level, so that contrasts can pair images there:
/// a forward pass over the test split each, and nothing else of the run changes.
class Milestones final : public UpdateHook {
 public:
  struct Options {
    bool outcomes = true;
  };
  static void bind(OptionTable& table, Options& options);
  static std::unique_ptr<UpdateHook> make(const Options& options, const HookSetup& setup);
  Milestones(const Options& options, const HookSetup& setup);

  void after_check(double train_loss) override;
  void between_updates() override;
  void save(Checkpoint& checkpoint) const override;

 private:
  /// The level whose checkpoint is being kept, and the loss that passed it.
  struct Passing {
    double level, train_loss;
  };
  CheckRule checks_;
  int64_t every_;
  bool outcomes_;
  HookedRun& run_;
  std::optional<Passing> passing_;
};

}  // namespace basin
