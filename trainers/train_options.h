// defines: TrainOptions, everything about one training run but data, model and optimiser; Protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/options.h"
#include "trainers/branch_options.h"
#include "trainers/hook_options.h"

namespace basin {

/// The limit of all counts: files hold them as float64.
inline constexpr double kMostExamples = 9007199254740992.0;  // 2^53

/// What ends a run: A-epochs and A-updates have a fixed budget, B a training loss to reach.
enum class Protocol { epochs, updates, matched_loss };
/// By its name in options and files; none for another text.
std::optional<Protocol> protocol_named(const std::string& name);

/// design: protocol A is a fixed budget in epochs or updates; B ends at a matched training loss. The keys of hooks come after
/// all others.
struct TrainOptions {
  int64_t seed = 1;
  std::string protocol = "A-epochs";  // A-epochs | A-updates | B
  int64_t batch_size = 256;           // of the first update, and of all where there are no batch_milestones
  std::vector<double> batch_milestones;  // where it grows, as shares of the budget in examples
  int64_t batch_factor = 5;              // by how much: that of Smith et al. 2018, arXiv 1711.00489
  double batch_rate_power = 0;           // the rate grows by that power of how much the batch has grown
  int64_t micro_batch =
      256;  // memory, never mathematics (to rounding); with batch norm a multiple of ghost_batch
  int64_t ghost_batch = 0;              // 0: min(256, batch_size)
  std::string duplicates = "weighted";  // weighted | repeated
  double learning_rate = 0.1;           // before the scaling rule
  double epochs = 10;                   // A-epochs; at least one update
  int64_t regime_batch = 0;             // A-epochs: the batch size that they are meant for; 0: all
  int64_t updates = 100;                // A-updates
  double target_loss = 1.0;             // B: full training loss in eval mode
  int64_t max_gradients = 500000;       // B: the schedule's length and the cap, in image gradients computed
  int64_t check_every =
      10000;  // examples between checks of the full training loss (B, or loss_levels); denser near the target
  std::vector<double> loss_levels;  // milestones: a checkpoint at the first check at or below each
  int64_t evaluate_every = 0;       // examples between evaluations on test; 0: at the end alone
  int64_t checkpoint_every = 0;     // updates between milestones "u000100"; 0: none
  int64_t layers_every = 0;  // updates between rows of norms by parameter; 0: 100 to 200 rows over the budget
  double checkpoint_seconds = 30;  // wall time between "latest" checkpoints
  double divergence_loss = 1e4;   // a batch or checked training loss above it, or not finite, is a divergence
  std::string dtype = "float32";  // float32 | float64
  std::string autocast = "none";  // none | bfloat16: of the forward passes of training batches alone
  std::string loss = "cross_entropy";  // a name of models/loss.h
  double label_smoothing = 0;          // of the loss trained on; evaluations, checks and probes are without
  BranchOptions branch;                // bound as a group of its own, [branch]
  /// What happens around updates; nothing unless the caller has registered_hooks() (trainers/hooks/registry.h).
  HookList hooks;

  bool ends_by(Protocol end) const { return protocol_named(protocol) == end; }

  /// The options of one hook: hook<LookaheadOptions>().every.
  template <class O>
  O& hook() {
    return hooks.of<O>();
  }
  template <class O>
  const O& hook() const {
    return hooks.of<O>();
  }
};
void bind_options(OptionTable& table, TrainOptions& options);

}  // namespace basin
