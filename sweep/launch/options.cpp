#include "sweep/launch/options.h"

#include <regex>
#include <set>

#include "core/error.h"

namespace basin {
namespace {

// Without these a task would not be what the sweep takes it for.
const std::set<std::string> kOurs = {
    "array",     "clusters", "dependency", "error",   "hold",   "job-name",  "no-requeue", "nodes", "ntasks",
    "open-mode", "output",   "parsable",   "requeue", "signal", "test-only", "wait",       "wrap"};

}  // namespace

SbatchOptions parse_sbatch_options(const std::vector<std::string>& texts) {
  SbatchOptions options;
  for (const std::string& text : texts) {
    std::smatch found;
    if (!std::regex_match(text, found, std::regex("(?:--)?([a-z][a-z-]*)(?:=([^\n]*))?")))
      throw ConfigError(
          fmt::format("--slurm {}: not KEY=VALUE with an option of sbatch, as in partition=gpu", text));
    if (kOurs.count(found[1])) throw ConfigError(fmt::format("--slurm {}: this one is set by Basin", text));
    options.emplace_back(found[1], found[2]);
  }
  return options;
}

std::optional<int64_t> minutes_of(const std::string& limit) {
  // "minutes", "minutes:seconds", "hours:minutes:seconds", "days-hours", "days-hours:minutes", "days-hours:minutes:seconds"
  std::smatch found;
  if (!std::regex_match(limit, found,
                        std::regex("(?:([0-9]{1,5})-)?([0-9]{1,7})(?::([0-9]{1,5}))?(?::([0-9]{1,5}))?")))
    return std::nullopt;
  const auto number = [&](size_t group) { return found[group].matched ? std::stoll(found[group]) : 0; };
  if (found[1].matched) return (number(1) * 24 + number(2)) * 60 + number(3);
  return found[4].matched ? number(2) * 60 + number(3) : number(2);
}

std::string value_of(const SbatchOptions& options, const std::string& key) {
  for (const auto& [name, value] : options)
    if (name == key) return value;
  return "";
}

}  // namespace basin
