#include <CLI/CLI.hpp>

#include "apps/subcommands.h"
#include "core/error.h"
#include "io/journal.h"
#include "io/run_file.h"

namespace basin {
namespace {

int recover(const std::string& folder) {
  bool torn = false;
  const RunRecord record = replay_journal(folder + "/journal", &torn);
  write_run_file(folder + "/run.h5", record);
  fmt::print("{}/run.h5: run {} rebuilt from its journal, status {}\n", folder, record.header.run_id, record.status);
  for (const auto& [name, table] : record.tables) fmt::print("  {:<8} {} rows\n", name, table.row_count());
  if (torn) fmt::print("  the journal's last entry was cut off by a crash and left out\n");
  return 0;
}

}  // namespace

void add_recover(CLI::App& app, Action& action) {
  auto folder = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("recover", "Rebuild a run's run.h5 from its journal");
  command->add_option("RUN_DIR", *folder, "Folder of one run: OUT/runs/<run_id>")->required();
  command->callback([folder, &action] { action = [folder] { return recover(*folder); }; });
}

}  // namespace basin
