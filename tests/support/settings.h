// defines: options_with(), an entry's options as settings say.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/options.h"

namespace basin::testing {

/// The defaults of an entry of any registry, with these settings, "key=value".
template <class Entry>
std::unique_ptr<AnyOptions> options_with(const Entry& entry, const std::vector<std::string>& settings) {
  std::unique_ptr<AnyOptions> options = entry.make_options();
  OptionTable table;
  options->bind(table);
  for (const std::string& setting : settings) table.set_from_text(setting, "test");
  return options;
}

}  // namespace basin::testing
