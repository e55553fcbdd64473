#include <CLI/CLI.hpp>

#include "apps/output/json_output.h"
#include "apps/output/status_text.h"
#include "apps/subcommands.h"
#include "core/error.h"

namespace basin {
namespace {

int show_status(const std::string& out, bool json) {
  const SweepLook look = look_at(read_study(frozen_study(out), {}), SweepPaths(out), {});
  json ? print_json(out, look) : print(out, look);
  return 0;
}

}  // namespace

void add_status(CLI::App& app, Action& action) {
  auto out = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("status", "Show how the runs of a sweep stand, also while it works elsewhere");
  command->add_option("DIR", *out, "folder of a sweep")->required();
  add_json_flag(*command, *json);
  command->callback([out, json, &action] { action = [out, json] { return show_status(*out, *json); }; });
}

}  // namespace basin
