// defines: LedgerGauge, what limits the updates of a run while it trains; LedgerStatus.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "core/math/critical_step.h"
#include "trainers/update_hook.h"

namespace basin {

struct LedgerGaugeOptions {
  int64_t every = 0;         // updates between rows; 0: none
  double tolerance = 0.125;  // of the critical learning rate, relative
};
void bind_options(OptionTable& table, LedgerGaugeOptions& options);

/// The status of the critical sharpness, as numbers in the table, whose columns are all numbers.
enum class LedgerStatus { ok = 0, no_descent = 1, never_rises = 2, below_rounding = 3, nonfinite = 4 };

/// What limits a run now, from the batch of every k-th update, with its crops, masks and ghost batches. L is that
/// batch's loss, w and w + d the weights before and after update t, all that hooks did to them included, g the batch's
/// gradient at w, eta the learning rate:
///   first_order = -g'd, the decrease of L that the gradient promises;  decrease = L(w) - L(w + d);
///   first_order_share = decrease / first_order: 1 for a line, 1/2 at the bottom of a parabola along d, 0 where L is back;
///   cosine = d_t'd_(t-1) / (|d_t| |d_(t-1)|): near 1 updates add up, below 0 they swing;
///   critical_sharpness = 2 / eta_c, eta_c = eta s, s the smallest factor with L(w + s d) > L(w) (arXiv 2601.16979;
///   core/math/critical_step.h), on a quadratic and without momentum g'Hg / |g|^2; between _low and _high;
///   noise_square, gradient_square: unbiased estimates, from the update's micro-batches (noise_look.h), of
///   E|g - G|^2 and |G|^2, G the gradient over the training set. noise_over_gradient is their ratio, NaN where the second isn't
///   positive. One update says little: average both over rows before dividing.
///
/// Draws nothing and puts the weights back, so that every number of a run stays as it would be without, to the bit. Cost per row: 6 to
/// 14 forward passes over the batch, the more the smaller the rate is to the critical one; memory four copies of the weights. Where first_order is below kRounding of L, its share
/// and the critical sharpness are rounding and NaN. Definitions: docs/probes.md#ledger-while-training.
class LedgerGauge final : public UpdateHook {
 public:
  using Options = LedgerGaugeOptions;
  static constexpr double kRounding = kLossRounding;
  /// Not with a perturbation, whose gradient is another one, nor with a method whose gradients are of other weights.
  static void check(const Options& options, const HookCheck& run);
  static std::unique_ptr<UpdateHook> make(const Options& options, const HookSetup& setup);
  LedgerGauge(const Options& options, const HookSetup& setup);

  bool measures(int64_t update) const override { return takes_noise_ && is_due(update); }
  void after_gradient(const OngoingUpdate& update) override;
  void before_step(const OngoingUpdate& update) override;
  void after_update(int64_t update) override;
  void save(Checkpoint& checkpoint) const override;
  void restore(const Checkpoint& checkpoint) override;
  std::optional<Table> table() const override;
  const std::vector<double>& row() const override { return row_; }

 private:
  bool is_due(int64_t update) const { return update % every_ == 0; }
  /// Whether the next update's row needs this one's change.
  bool comes_before(int64_t update) const { return is_due(update + 1); }
  void look_at_noise_of(const OngoingUpdate& update);
  double loss_at(double factor) const;

  int64_t every_;
  double tolerance_;
  bool plain_;  // gradients are those of the batch's mean loss, not of examples weighted at random
  bool takes_noise_;
  int64_t micro_batch_, examples_;
  Model& model_;
  const Optimizer& optimizer_;
  BatchGradient& gradient_;
  RunProgress& progress_;
  std::vector<Batch> groups_;  // of the update being made
  BatchPlace place_;
  double loss_ = NAN, noise_square_ = NAN, gradient_square_ = NAN;
  std::vector<at::Tensor> batch_gradient_, before_, change_, last_change_;
  std::vector<double> row_;
};

}  // namespace basin
