// defines: match_units(), the order of one network's hidden units that brings it nearest to another.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"

namespace basin {

struct UnitMatching {
  at::Tensor state;                 // the moved network with its units in their new order
  std::vector<std::string> groups;  // Model::unit_groups(), by name
  std::vector<at::Tensor> order;    // int64 [units]: unit i of a group is now what was unit order[i]
  double distance_before = 0, distance_after = 0;  // |w_fixed - w_moved|_2 over all parameters
  int64_t sweeps = 0;                              // over all groups, the last one without a change
  bool converged = false;                          // there was such a sweep
};

/// Reorders the units of the network at `moved`, its function unchanged, so that its weights are as near as
/// can be found to those at `fixed`: maximises sum_l <A_l, P_l B_l P_{l-1}'> over one permutation per group
/// (weight matching of Ainsworth, Hayase, Srinivasa, Git Re-Basin, ICLR 2023, algorithm 1). One group after
/// the other, in an order drawn from `seed` for each sweep, takes its best permutation with the others held:
/// a linear assignment. Biases and a norm's parameters count as weights; running statistics are reordered
/// with their units, but don't count. Both are state vectors (landscape/state_vector.h) of `model`, which is
/// left as it was.
///
/// Cost: no gradient and no example; a sweep is one product of matrices and one assignment, O(units^3), per
/// group. Memory: two copies of the parameters in float64 and three of the state. What can go wrong:
/// coordinate ascent ends at a local maximum, which one depends on the seed. Networks of one function need not
/// be permutations of each other (scales), so a barrier that is left says nothing final. Where both axes of a
/// tensor belong to one group (a residual stream) the sum is not linear in its permutation: the step is that
/// of the linearised sum, and is not taken where the sum doesn't rise.
///
/// ConfigError where the model has no groups.
UnitMatching match_units(Model& model, const at::Tensor& fixed, const at::Tensor& moved, uint64_t seed,
                         int64_t most_sweeps = 100);

}  // namespace basin
