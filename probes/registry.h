// defines: ProbeEntry and the table of probes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/registry.h"
#include "probes/probe.h"

namespace basin {

/// How `basin audit` measures a probe. It asks whether numbers move, not what they are: fewer draws and pairs will do. Settings
/// without the probe's name: "count=1".
struct ProbeAudit {
  /// Further settings that invariance depends on, as eta = 0, or that are another method.
  struct Variant {
    std::string name = {};  // where the ids of definitions don't say what is other
    std::vector<std::string> settings = {};
  };
  std::vector<std::string> cheap = {};
  std::vector<Variant> variants = {};  // each on top of the cheap ones
};

/// A quantity that stands in tables and figures of sweeps, of a vector its first entry.
struct ProbeHeadline {
  std::string quantity;  // Quantity::name
  std::string heading;   // of its column in table.md; empty: in figures alone
  std::string label;     // of its axis, with units
};

/// A quantity that is a ratio of two others: over runs it is the ratio of their means, never a mean of ratios.
struct ProbeRatio {
  std::string quantity, numerator, denominator;
};

struct ProbeEntry {
  std::string name;
  std::string label;  // in figures and tables
  std::string help;
  int64_t version = 1;  // raised when the same settings would give other numbers: files of an older one are
                        // measured again
  bool draws = true;    // another seed gives other numbers
  std::vector<std::string> definitions = {};  // Quantity::definition of all that it may find
  std::vector<std::string> entries = {};  // entry_name() of all that it may find; # is a number, * any text
  std::vector<ProbeHeadline> headlines = {};
  std::vector<ProbeRatio> ratios = {};
  std::string bound_error = "spread";    // what the uncertainty of its lower bounds is, in words
  std::vector<std::string> copies = {};  // quantities that say in other words what a ratio says
  ProbeAudit audit = {};
  std::unique_ptr<AnyOptions> (*make_options)() = nullptr;
  std::unique_ptr<Probe> (*make)(const AnyOptions& options) = nullptr;
};

template <class Options, std::unique_ptr<Probe> (*make)(const Options&)>
ProbeEntry probe_entry(ProbeEntry entry) {
  entry.make_options = &basin::make_options<Options>;
  entry.make = [](const AnyOptions& options) { return make(options_as<Options>(options)); };
  return entry;
}

/// Whether the probe may find a number of this name.
bool has_entry(const ProbeEntry& probe, const std::string& name);

/// In the order of lists and figures. A new probe is one file and one line in registry.cpp.
const std::vector<ProbeEntry>& probe_registry();

}  // namespace basin
