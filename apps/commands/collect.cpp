#include <CLI/CLI.hpp>

#include "apps/subcommands.h"
#include "core/error.h"
#include "sweep/collect/collect.h"
#include "sweep/folder.h"

namespace basin {

void add_collect(CLI::App& app, Action& action) {
  auto folders = std::make_shared<std::vector<std::string>>();
  auto out = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("collect", "Collect the runs of one or several sweeps into sweep.h5 and table.md");
  command->add_option("DIR", *folders, "folders of sweeps, finished or not")->required();
  command->add_option("--out", *out, "folder for both files; default: DIR, if there is only one");
  command->callback([&action, folders, out] {
    action = [folders, out] {
      if (out->empty() && folders->size() > 1)
        throw ConfigError(fmt::format(
            "{} sweeps to merge: name a folder for sweep.h5 and table.md with --out", folders->size()));
      const std::string folder = out->empty() ? folders->front() : *out;
      const std::optional<FileLock> common = common_lock(folder, false);
      collect(*folders, folder);
      fmt::print("{0}/sweep.h5\n{0}/table.md\n", folder);
      return 0;
    };
  });
}

}  // namespace basin
