#include <CLI/CLI.hpp>

#include "apps/subcommands.h"
#include "runs/recovery.h"

namespace basin {
namespace {

int recover(const std::string& folder) {
  const Recovery found = recover_run(folder);
  const RunRecord& record = found.record;
  const std::string file = folder + "/run.h5";
  if (found.was_whole) {
    fmt::print(
        "{}: complete, status {}, {} updates; the end of its journal is missing, so run.h5 is left "
        "unchanged\n",
        file, to_string(record.status), updates_in(record));
    return 0;
  }
  fmt::print("{}: run {} rebuilt from its journal, status {}{}\n", file, record.header.run_id,
             to_string(record.status),
             record.status_message.empty() ? "" : " (" + record.status_message + ")");
  for (const auto& [name, table] : record.tables) fmt::print("  {:<8} {} rows\n", name, table.row_count());
  if (found.torn) fmt::print("  the journal's last entry was cut off by a crash and left out\n");
  return 0;
}

}  // namespace

void add_recover(CLI::App& app, Action& action) {
  auto folder = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("recover", "Rebuild a run's run.h5 from its journal");
  command->add_option("RUN_DIR", *folder, "folder of a run, OUT/runs/<run_id>")->required();
  command->callback([folder, &action] { action = [folder] { return recover(*folder); }; });
}

}  // namespace basin
