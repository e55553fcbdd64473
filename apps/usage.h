// defines: usage_error(), one line about a command line that can't be parsed; subcommand_of().
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace basin {

/// Those of a command, without the workers'.
std::vector<std::string> subcommand_names(const CLI::App& command);

/// The subcommand of that name; an unknown one is a ConfigError that names the nearest, or all.
const CLI::App& subcommand_of(const CLI::App& command, const std::string& name);

/// Says what is wrong, in the words that were typed, names the nearest subcommand or option if there is one,
/// and whose --help to read. `app` is the program as far as parsing got.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace basin
