#include "runs/probe_options.h"

#include "probes/registry.h"
#include "runs/folder.h"

namespace basin {
namespace {

// A probe measures a run as it is: only tables of probes, [probes] and [runtime] may be set.
void refuse_run_keys(const std::vector<std::string>& sets) {
  RunOptions options;
  OptionTable allowed;
  options.probe_options.bind(allowed);
  allowed.group("probes", [&](OptionTable& t) { bind_options(t, options.probes); });
  allowed.group("runtime", [&](OptionTable& t) { bind_options(t, options.runtime); });
  for (const std::string& set : sets) allowed.set_from_text(set, "--set");
}

// As the run's study has them, or every probe with default settings at the end.
RunOptions default_options(const std::string& run_folder) {
  if (std::optional<RunOptions> study = study_options(run_folder)) {
    if (study->probes.run.empty()) study->probes.run = names_of(probe_registry());
    return *std::move(study);
  }
  RunOptions options;
  options.probes.run = names_of(probe_registry());
  options.probes.at = {"end"};
  return options;
}

bool is_set(const std::string& key, const std::vector<std::string>& sets) {
  return std::any_of(sets.begin(), sets.end(), [&](const std::string& set) {
    return set.rfind(key, 0) == 0 && set.find_first_of(" =", key.size()) == key.size();
  });
}

void make_room_for_variants(const std::vector<std::string>& sets, OptionSets& probe_options) {
  OptionSets kept;
  for (const ProbeEntry& entry : probe_registry()) {
    const OptionView options = probe_options.at(entry.name).view(entry.name);
    const bool asked = std::any_of(options.begin(), options.end(), [&](const Option& option) {
      return option.traits.is_preset && is_set(option.key, sets);
    });
    kept.add(entry.name, asked ? entry.make_options() : probe_options.at(entry.name).clone());
  }
  probe_options = std::move(kept);
}

}  // namespace

RunOptions options_to_probe(const std::string& run_folder, const std::vector<std::string>& sets) {
  refuse_run_keys(sets);
  RunOptions options = default_options(run_folder);
  make_room_for_variants(sets, options.probe_options);
  OptionTable table = options.table();
  for (const std::string& set : sets) table.set_from_text(set, "--set");
  return options;
}

}  // namespace basin
