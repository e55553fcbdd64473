#include <CLI/CLI.hpp>

#include "apps/arguments.h"
#include "apps/subcommands.h"
#include "apps/usage.h"
#include "core/error.h"

namespace basin {

/// `basin help data get` is `basin data get --help`.
void add_help(CLI::App& app, Action& action) {
  auto names = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "what a subcommand does and takes");
  CLI::Option* const typed = command->add_option("SUBCOMMAND", *names, "its name, as in: basin help sweep");
  offer(*typed, Offer::one, [&app] { return subcommand_names(app); });
  command->callback([&app, &action, names] {
    action = [&app, names] {
      const CLI::App* found = &app;
      std::string name = app.get_name();
      for (const std::string& typed : *names) {
        found = &subcommand_of(*found, typed);
        name += " " + typed;
      }
      // Not App::help(), which goes on to the subcommand that was typed: this one.
      fmt::print("{}", found->get_formatter()->make_help(found, name, CLI::AppFormatMode::Normal));
      return 0;
    };
  });
}

}  // namespace basin
