// defines: Lookahead, slow weights that the run's weights go back to every few updates.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainers/hooks/weight_copy.h"
#include "trainers/update_hook.h"

namespace basin {

struct LookaheadOptions {
  int64_t every = 0;                  // updates between synchronisations with slow weights; 0: no Lookahead
  double alpha = 0.5;                 // step of the slow weights; 0.8 is the default of the authors' code
  std::string schedule = "constant";  // constant | cubic: from 1 to alpha
};
void bind_options(OptionTable& table, LookaheadOptions& options);

/// After update t = k, 2k, ... of T, k = lookahead_every, alpha = lookahead_alpha:
///   phi <- phi + alpha_t (theta - phi),  theta <- phi;   after update T  theta <- phi.
/// theta are the run's weights, which the optimiser moves, phi the slow ones, at the start the same.
///   constant  alpha_t = alpha: Zhang, Lucas, Hinton & Ba 2019 (arXiv 1907.08610), algorithm 1, which returns phi;
///   cubic     alpha_t = 1 - (1 - alpha) (t/T)^3: airbench94 (KellerJordan/cifar10-airbench,
///   legacy/airbench94.py) with k = 5, 1 - alpha = 0.95^5.
/// The optimiser's state stays as it is (the authors' pullback_momentum = "none"). Parameters alone: the
/// authors' code leaves running statistics out, airbench94 takes them in, and here there are none to
/// synchronise: training doesn't read them, and each evaluation re-estimates them at the weights of then.
///
/// Cost: two passes over the parameters every k updates; memory: one copy, in their type. What can go wrong:
/// updates after the last multiple of k have no effect on the weights that the run ends with (with alpha = 1
/// that is all in which it differs from a run without). A run of protocol B that reaches its target before
/// update T keeps the weights that reached it.
class Lookahead final : public UpdateHook {
 public:
  using Options = LookaheadOptions;
  /// Not with an optimiser that has overlap.
  static void check(const Options& options, const HookCheck& run);
  static UpdatesNeeded updates_needed(const Options& options);
  static std::unique_ptr<UpdateHook> make(const Options& options, const HookSetup& setup);
  Lookahead(const std::vector<ParameterInfo>& parameters, const Options& options, int64_t updates);

  void after_update(int64_t t) override;
  void save(Checkpoint& checkpoint) const override;
  void restore(const Checkpoint& checkpoint) override;

 private:
  double step_at(int64_t t) const;
  int64_t every_, updates_;
  double alpha_;
  bool cubic_;
  WeightCopy slow_;
};

}  // namespace basin
