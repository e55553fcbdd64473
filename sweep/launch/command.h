// defines: run_command(), another program run to its end; CommandResult; find_program().
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace basin {

struct CommandResult {
  int exit_code = -1;  // -1 where a signal ended it
  std::string out, err;
  bool ok() const { return exit_code == 0; }
};

/// Where PATH has it, or nothing.
std::optional<std::string> find_program(const std::string& name);

/// arguments[0] is looked for in PATH. stdin is /dev/null. Variables that would change what squeue lists (SQUEUE_*) are left out. It has a process group of its own, so Ctrl-C on the terminal doesn't reach it.
/// IoError where it can't be started.
CommandResult run_command(const std::vector<std::string>& arguments);

}  // namespace basin
