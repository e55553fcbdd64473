// defines: the table of hooks; registered_hooks(), the options of all of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainers/hook_options.h"

namespace basin {

struct HookEntry {
  std::string name;
  std::string help;             // one sentence
  std::vector<std::string> on;  // settings of a run that has it, for tests of all hooks
  std::unique_ptr<HookOptions> (*make_options)();
};

/// In the order in which hooks act and in which their keys stand in config.toml, so part of the names of runs. A new hook is
/// one file and one line in registry.cpp.
const std::vector<HookEntry>& hook_registry();

/// What TrainOptions::hooks holds where a study reads it: all of them, as they are by default.
HookList registered_hooks();

}  // namespace basin
