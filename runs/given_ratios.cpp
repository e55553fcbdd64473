#include "runs/given_ratios.h"

#include <filesystem>

#include "core/error.h"
#include "runs/folder.h"
#include "study/trust_ratios.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> ratios_in(const std::string& config, const RunOptions& options) {
  if (!fs::exists(config)) return {};
  const RunOptions before = load_run_options(config, {});
  const TrustArm* arm = trust_arm(before);
  const bool same = arm != nullptr && before.run_id() == options.run_id();
  return same ? arm->trust_ratios : std::vector<std::string>();
}

}  // namespace

RunOptions with_given_ratios(RunOptions options, const std::string& folder) {
  const TrustArm* arm = trust_arm(options);
  if (arm == nullptr || !arm->frozen() || !is_run_id(arm->trust_from)) return options;
  const std::string key = options.optimizer + ".trust_ratios";
  std::vector<std::string> found = ratios_in(folder + "/config.toml", options);
  const std::string record = run_next_to(folder, arm->trust_from) + "/run.h5";
  if (found.empty() && fs::exists(record)) found = mean_trust_ratios(record);
  if (!arm->trust_ratios.empty() && (found.empty() || found == arm->trust_ratios)) return options;
  if (found.empty()) throw untrained(record, options.optimizer + ".trust_from");
  if (!arm->trust_ratios.empty())
    throw ConfigError(fmt::format("{}: not those of the run {}, which {}.trust_from names: set one of them",
                                  key, arm->trust_from, options.optimizer));
  options.table().set(key, std::move(found), folder);
  return options;
}

}  // namespace basin
