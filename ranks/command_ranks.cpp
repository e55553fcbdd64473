#include "ranks/command_ranks.h"

#include <ATen/Version.h>

#include <fstream>

#include "core/build_info.h"
#include "core/provenance.h"

namespace basin {
namespace {

/// "Intel(R) Xeon(R) Processor @ 2.50GHz, AVX512"
std::string processor() {
  std::ifstream about("/proc/cpuinfo");
  for (std::string line; std::getline(about, line);)
    if (line.starts_with("model name"))
      return line.substr(line.find(':') + 2) + ", " + at::get_cpu_capability();
  return at::get_cpu_capability();
}

}  // namespace

CommandRanks::CommandRanks(int asked, Whose whose) {
  const bool told = whose == Whose::any_launchers || started_by_local_ranks();
  const std::optional<RankPlace> launched = told ? place_of_environment() : std::nullopt;
  if (launched && asked > 1 && !started_by_local_ranks())
    throw ConfigError(
        fmt::format("--ranks {}: a launcher has started {} processes already", asked, launched->size));
  if (!launched && asked > 1) local_.emplace(asked, command_line());
  const RankPlace place = launched ? *launched : local_ ? local_->place() : RankPlace();
  if (place.size == 1) return;
  try {
    group_ = RankGroup::join(place, RankGroup::kMeeting, RankGroup::kLook, [this] {
      if (local_) local_->require_all();
    });
  } catch (...) {
    if (local_) local_->end_others();
    throw;
  }
  group_->agree("the build", fmt::format("{} ({})", build_git_commit(), build_version()));
  group_->agree("the processor", processor());
}

}  // namespace basin
