#include <CLI/CLI.hpp>

#include "apps/subcommands.h"
#include "sweep/collect/collect.h"

namespace basin {

void add_collect(CLI::App& app, Action& action) {
  auto folder = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("collect", "Collect a sweep's runs into sweep.h5 and table.md");
  command->add_option("DIR", *folder, "folder of a sweep, finished or not")->required();
  command->callback([&action, folder] {
    action = [folder] {
      collect(*folder);
      fmt::print("{0}/sweep.h5\n{0}/table.md\n", *folder);
      return 0;
    };
  });
}

}  // namespace basin
