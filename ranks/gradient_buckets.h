// defines: GradientBuckets, which sums gradients over ranks while they are being computed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "ranks/rank_group.h"

namespace basin {

/// The .grad tensors of all parameters as parts of a few flat buckets, filled from the last parameter to the first, the order in which a
/// backward pass ends with them (Li et al. 2020, arXiv 2006.15704, §3.2.3). A bucket's sum over ranks begins as soon as its last
/// gradient is there and every bucket before it has begun, so all ranks begin their sums in one order, whichever finishes first.
///
///   buckets.arm();       // before the last backward pass of this rank
///   loss.backward();
///   buckets.finish();    // begins what has not begun, waits for all
///
/// A rank that has nothing to compute calls finish() alone, its gradients zero. Memory: none besides the gradients. Each gradient is laid out
/// like its parameter, which must be dense, and begins at a multiple of 64 bytes.
class GradientBuckets {
 public:
  static constexpr int64_t kBytes = 4 << 20;  // one sum's

  /// Gives each tensor a .grad of zeros. `ranks` outlives this.
  GradientBuckets(std::vector<at::Tensor> parameters, const RankGroup& ranks, int64_t bytes = kBytes);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  /// The next backward pass is the last one that adds to the gradients.
  void arm();
  void finish();
  int64_t buckets() const;
  /// Sums that began before finish(), of the last armed pass.
  int64_t begun_on_the_way() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // the parameters' hooks look at it
  std::vector<at::Tensor> parameters_;
};

}  // namespace basin
