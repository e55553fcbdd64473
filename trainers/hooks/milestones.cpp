#include "trainers/hooks/milestones.h"

#include "trainers/hooks/registry.h"

namespace basin {

void Milestones::bind(OptionTable& table, Options& options) {
  table
      .add("outcomes_at_levels", options.outcomes, anything(),
           "keep the outcome of every test image at each of loss_levels; costs a pass over the test images "
           "each")
      .quiet_default();
}

std::unique_ptr<UpdateHook> Milestones::make(const Options& options, const HookSetup& setup) {
  if (setup.train.checkpoint_every == 0 && setup.train.loss_levels.empty()) return nullptr;
  return std::make_unique<Milestones>(options, setup);
}

Milestones::Milestones(const Options& options, const HookSetup& setup)
    : checks_(setup.train),
      every_(setup.train.checkpoint_every),
      outcomes_(options.outcomes),
      run_(setup.run) {}

void Milestones::after_check(double train_loss) {
  RunProgress& progress = run_.progress();
  while (progress.levels_passed < static_cast<int64_t>(checks_.levels().size())) {
    const double level = checks_.levels()[static_cast<size_t>(progress.levels_passed)];
    if (train_loss > level) return;
    progress.levels_passed += 1;
    passing_ = {level, train_loss};
    run_.keep_checkpoint(CheckRule::level_label(level));
    passing_.reset();
    if (outcomes_) run_.keep_test_outcomes(CheckRule::level_label(level));
    run_.event("info", fmt::format("loss level {:g} passed with {:.6g} at update {}", level, train_loss,
                                   progress.update));
  }
}

void Milestones::between_updates() {
  const int64_t update = run_.progress().update;
  if (every_ == 0 || update % every_ != 0) return;
  run_.refresh_statistics();
  run_.keep_checkpoint(fmt::format("u{:06d}", update));
}

void Milestones::save(Checkpoint& checkpoint) const {
  if (!passing_) return;
  checkpoint.progress["level"] = passing_->level;
  checkpoint.progress["level_overshot"] = CheckRule::overshot_level(passing_->train_loss, passing_->level);
}

HookEntry milestones_hook() {
  return hook_entry<Milestones>({
      .name = "milestones",
      .help = "Checkpoints at regular intervals and at loss levels.",
      .on = {"checkpoint_every=5", "loss_levels=[2.2]", "outcomes_at_levels=true"},
  });
}

}  // namespace basin
