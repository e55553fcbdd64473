#include "runs/checkpoints.h"

#include <cctype>
#include <filesystem>

#include "core/error.h"
#include "io/checkpoint.h"
#include "study/checkpoint_names.h"

namespace basin {

namespace fs = std::filesystem;

std::string checkpoint_path(const std::string& run_folder, const std::string& label) {
  return run_folder + "/ckpt/" + label + ".h5";
}

std::vector<std::string> checkpoint_labels(const std::string& run_folder) {
  const fs::path folder = fs::path(run_folder) / "ckpt";
  if (!fs::is_directory(folder)) throw IoError(run_folder + ": not a run folder (it has no ckpt/)");
  std::vector<std::pair<int64_t, std::string>> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string label = entry.path().stem().string();
    if (entry.path().extension() != ".h5" || label == "latest" || label == "previous") continue;
    found.emplace_back(read_checkpoint_update(entry.path().string()), label);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> labels;
  for (const auto& [update, label] : found) labels.push_back(label);
  return labels;
}

std::vector<std::string> chosen_labels(const std::string& run_folder, const std::vector<std::string>& at) {
  std::vector<std::string> chosen;
  for (const std::string& label : checkpoint_labels(run_folder)) {
    const bool wanted = std::any_of(at.begin(), at.end(), [&](const std::string& asked) {
      return asked == "all" || asked == label || (asked == "loss" && label.starts_with("loss-")) ||
             (asked == "every" && is_cadence(label));
    });
    if (wanted) chosen.push_back(label);
  }
  return chosen;
}

}  // namespace basin
