// defines: Lbfgs, multi-batch L-BFGS with overlapping batches.
#pragma once

#include <string>
#include <vector>

#include "optim/exclusion.h"
#include "optim/optimizer.h"

namespace basin {

struct LbfgsOptions {
  int64_t history = 10;
  double overlap = 0.25;
  double min_curvature = 1e-8;
  double weight_decay = 0;
  Exclusions exclude_from_decay = default_exclusions();
};
void bind_options(OptionTable& table, LbfgsOptions& options);

/// The batch method of Sandblaster (Dean et al. 2012) made sound for batches that are samples: Berahas, Nocedal & Takáč
/// 2016 (arXiv 1605.06049), algorithm 1. Consecutive updates share examples O, the last `overlap` of a batch, and pairs are
///   s = w_{k+1} - w_k,   y = g_O(w_{k+1}) - g_O(w_k),
/// differences of the gradient of the same examples; y of two different batches would measure their noise. A pair with
/// y's < min_curvature s's is left out.  w -= lr H g, H by the two-loop recursion over the last `history` pairs from
/// H0 = s'y / y'y of the newest (Nocedal & Wright 2006, algorithm 7.4). Before there is a pair the step is
/// lr min(1, 1/|g|) g.
///
/// Without set_overlap() (torch's way to call it, for the same batch each time) y is that of whole gradients. Weight decay
/// is part of the function. Cost: 1 + overlap gradients per example, for the trainer keeps the order of examples that all
/// methods have and takes O's second gradient with the next batch (the paper has O in both batches);
/// 4 history + 2 vector operations; memory 2 history + 2 vectors. On several processes with the same gradients the inner products, 3 history
/// + 3 for each update, are divided by weights and summed from kDividedFrom weights on, as Sandblaster's are; pairs and steps are those of
/// one process but for the order of sums. Can go wrong: with batches that differ and no set_overlap(), with
/// dropout (the trainer refuses it), and where O is small against the noise.
/// There are no factors by parameter: H sets how the steps of one compare with another's.
class Lbfgs : public Optimizer {
 public:
  static constexpr int64_t kDividedFrom = 1 << 16;  // weights: below, the messages would take longer

  Lbfgs(std::vector<ParameterInfo> parameters, const LbfgsOptions& options);
  double overlap() const override { return options_.overlap; }
  void set_overlap(std::vector<at::Tensor> with_last, std::vector<at::Tensor> with_next) override;
  void share_sums(const SharedSums& sums) override;
  /// NaN: H is no diagonal.
  std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& /*gradients*/) const override {
    return no_diagonal();
  }
  double stability_limit() const override { return NAN; }

 private:
  using Vector = std::vector<at::Tensor>;
  void update(TensorLists& lists) override;
  void learn_pair(const Vector& gradient_now);
  Vector direction(const Vector& gradient) const;
  double dot(const Vector& a, const Vector& b) const;
  // Slots: the last step, the gradient that the next pair begins with, then s and y of each pair in turn.
  Vector& last_step_taken() { return slot(0); }
  Vector& gradient_then() { return slot(1); }
  size_t place_of(int64_t age) const;  // of the pair that is `age` younger pairs old
  const Vector& s(int64_t age) const { return slot(2 + 2 * place_of(age)); }
  const Vector& y(int64_t age) const { return slot(3 + 2 * place_of(age)); }

  LbfgsOptions options_;
  SharedSums sums_;
  int64_t pairs_learnt_ = 0;
  Vector with_last_, with_next_;
};

}  // namespace basin
