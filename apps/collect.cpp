#include "apps/collect.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "apps/subcommands.h"
#include "apps/sweep_file.h"
#include "apps/table.h"
#include "core/files.h"

namespace basin {

void collect(const std::string& sweep_folder) {
  const std::filesystem::path folder = sweep_folder;
  const std::vector<SweepRow> rows = read_sweep_rows(sweep_folder);
  const std::filesystem::path study = folder / "study.toml";
  write_sweep_file((folder / "sweep.h5").string(),
                   std::filesystem::exists(study) ? read_file(study.string()) : "", rows);
  write_file_atomically((folder / "table.md").string(), table_markdown(rows));
}

void add_collect(CLI::App& app, Action& action) {
  auto folder = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("collect", "gather a sweep's runs into sweep.h5 and table.md");
  command->add_option("DIR", *folder, "a sweep's folder, finished or not")->required();
  command->callback([&action, folder] {
    action = [folder] {
      collect(*folder);
      fmt::print("{0}/sweep.h5\n{0}/table.md\n", *folder);
      return 0;
    };
  });
}

}  // namespace basin
