// defines: BranchOptions, what a run says about the checkpoint of another run that it begins from.
#pragma once

#include <cstdint>
#include <string>

#include "core/options.h"

namespace basin {

/// [branch]. `from` as it is written: conditions that name a run of the study, or a path; as it is resolved (study/branches.h):
/// the parent's run_id, or "sha256:" and the SHA-256 of a file.
struct BranchOptions {
  std::string from;                  // empty: no branch
  std::string at;                    // label of the parent's checkpoint
  std::string optimizer = "kept";    // kept | reset | rescaled
  std::string stream = "continued";  // continued | restarted
  double anneal = 0;    // share of the parent's updates over which the rate falls to zero; 0: no annealing
  int64_t updates = 0;  // further updates; 0: the run's own protocol decides
  double rate_factor =
      1;  // of the branch's learning rate; multiplied into it, and 1 again, when the parent is named
  std::string path;     // of a file outside of the study
  std::string setting;  // the parent's config_id

  bool exists() const { return !from.empty(); }
  bool operator==(const BranchOptions&) const = default;
};
void bind_options(OptionTable& table, BranchOptions& options);

/// ConfigError for options that exclude one another. `overlap`: Optimizer::overlap().
void check_branch(const BranchOptions& options, double overlap);

}  // namespace basin
