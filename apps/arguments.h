// defines: helpers for the argument lists of subcommands.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace basin {

/// `--set key=value`, one value per occurrence.
void add_set_option(CLI::App& command, std::vector<std::string>& sets);

/// `NAME A[,B...]`: one comma-separated list per occurrence; later occurrences add to it. What follows a
/// space is another argument.
void add_list_option(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                     const std::string& help);

}  // namespace basin
