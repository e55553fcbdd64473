#include "launch/options.h"

#include <regex>
#include <set>

#include "core/error.h"

namespace basin {
namespace {

// Without these a task would not be what the sweep takes it for.
const std::set<std::string> kOurs = {"array",      "dependency", "output", "error",    "open-mode", "requeue",
                                     "no-requeue", "signal",     "wrap",   "parsable", "ntasks",    "wait"};

}  // namespace

SbatchOptions parse_sbatch_options(const std::vector<std::string>& texts) {
  SbatchOptions options;
  for (const std::string& text : texts) {
    std::smatch found;
    if (!std::regex_match(text, found, std::regex("(?:--)?([a-z][a-z-]*)(?:=([^\n\"]*))?")))
      throw ConfigError(
          fmt::format("--slurm {}: not KEY=VALUE with an option of sbatch, as in partition=gpu", text));
    if (kOurs.count(found[1])) throw ConfigError(fmt::format("--slurm {}: this one is set by Basin", text));
    options.emplace_back(found[1], found[2]);
  }
  return options;
}

std::string value_of(const SbatchOptions& options, const std::string& key) {
  for (const auto& [name, value] : options)
    if (name == key) return value;
  return "";
}

}  // namespace basin
