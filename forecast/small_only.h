// defines: require_small_batches(), the rule that a forecast sees nothing of large batches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "study/run_options.h"

namespace basin {

/// The largest batch size that a forecast may look at.
inline constexpr int64_t kLargestSmallBatch = 256;

/// ConfigError in one line, "a forecast that would see its own test runs", where OUT holds anything of a batch size above
/// kLargestSmallBatch: a run, begun or not, whose batch is or grows above it; a cell of its study.toml; a choice in its
/// selection.toml; a row of its sweep.h5 or tune.h5 (those two may have rows whose runs were deleted since). Nor may a run have
/// taken something from another one, which may have had large batches, lie in another folder or be gone: no branches, and no
/// given trust ratios (the frozen arms of LARS and LAMB).
void require_small_batches(const std::filesystem::path& out,
                           const std::vector<std::filesystem::path>& folders,
                           const std::vector<RunOptions>& options);

}  // namespace basin
