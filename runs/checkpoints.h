// defines: where the checkpoints of a run lie, and which of them a plan asks for.
#pragma once

#include <string>
#include <vector>

namespace basin {

/// RUN/ckpt/<label>.h5
std::string checkpoint_path(const std::string& run_folder, const std::string& label);

/// Checkpoints of a run folder in order of update: labels of ckpt/*.h5 but "latest" and "previous".
std::vector<std::string> checkpoint_labels(const std::string& run_folder);
/// Those of them that `at` asks for: "all", "loss" (every level), "every" (the cadence) or labels.
std::vector<std::string> chosen_labels(const std::string& run_folder, const std::vector<std::string>& at);

}  // namespace basin
