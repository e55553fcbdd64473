#include <CLI/CLI.hpp>

#include "apps/arguments.h"
#include "apps/subcommands.h"
#include "apps/usage.h"
#include "core/error.h"

namespace basin {

/// `basin help data get` is `basin data get --help`.
void add_help(CLI::App& app, Action& action) {
  auto names = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "Show what a subcommand does and which arguments it takes");
  CLI::Option* const typed =
      command->add_option("SUBCOMMAND", *names, "name of a subcommand, as in: basin help sweep");
  offer(*typed, Offer::one, [&app] { return subcommand_names(app); });
  command->callback([&app, &action, names] {
    action = [&app, names] {
      const CLI::App* found = &app;
      std::string name = app.get_name();
      for (const std::string& typed : *names) {
        found = &subcommand_of(*found, typed);
        name += " " + typed;
      }
      // Not App::help(): it would show the help of the subcommand that was typed, which is this one.
      fmt::print("{}", found->get_formatter()->make_help(found, name, CLI::AppFormatMode::Normal));
      return 0;
    };
  });
}

}  // namespace basin
