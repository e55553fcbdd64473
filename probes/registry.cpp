#include "probes/registry.h"

#include <cctype>
#include <string_view>

namespace basin {
namespace {

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  const char first = pattern.front();
  const std::string_view rest = pattern.substr(1);
  if (first != '#' && first != '*')
    return !name.empty() && name.front() == first && matches(rest, name.substr(1));
  for (size_t taken = 1; taken <= name.size(); ++taken) {
    if (first == '#' && !std::isdigit(static_cast<unsigned char>(name[taken - 1]))) return false;
    if (matches(rest, name.substr(taken))) return true;
  }
  return false;
}

}  // namespace

// One line for each, in the order of lists and figures: NAME_entry() is a function of its own file.
// clang-format off
#define BASIN_PROBES(entry) \
  entry(top_eigenvalues) \
  entry(sharpness_keskar) \
  entry(noise_scale) \
  entry(dual_noise_scale) \
  entry(gradient_statistics) \
  entry(noise_curvature) \
  entry(batch_sharpness) \
  entry(curvature) \
  entry(preconditioned_curvature) \
  entry(generalised_sharpness) \
  entry(sharpness_sam) \
  entry(sharpness_adaptive) \
  entry(pac_bayes) \
  entry(relative_flatness) \
  entry(fisher_rao) \
  entry(weight_norms) \
  entry(margins) \
  entry(ledger)
// clang-format on

#define BASIN_DECLARE(name) ProbeEntry name##_entry();
BASIN_PROBES(BASIN_DECLARE)

bool has_entry(const ProbeEntry& probe, const std::string& name) {
  return std::any_of(probe.entries.begin(), probe.entries.end(),
                     [&](const std::string& pattern) { return matches(pattern, name); });
}

const std::vector<ProbeEntry>& probe_registry() {
#define BASIN_MAKE(name) name##_entry(),
  static const std::vector<ProbeEntry> table{BASIN_PROBES(BASIN_MAKE)};
  return table;
}

}  // namespace basin
