#include <CLI/CLI.hpp>

#include "apps/subcommands.h"
#include "core/error.h"
#include "io/damaged.h"
#include "io/unsealed.h"

namespace basin {
namespace {

/// Empty if the file is what was sealed, else what is wrong with it.
std::string fault_of(const std::string& path) {
  try {
    return check_seal(path) ? "" : path + ": no seal";
  } catch (const DamagedError& error) {
    return error.what();
  }
}

/// Exit code 4, the one for file errors, if a file is damaged.
int check(const std::vector<std::string>& files) {
  int exit_code = 0;
  for (const std::string& file : files) {
    const std::string fault = fault_of(file);
    fmt::print("{}\n", fault.empty() ? file + ": whole" : fault);
    if (!fault.empty()) exit_code = IoError("").exit_code();
  }
  return exit_code;
}

int seal(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (fault_of(file).empty())
      fmt::print("{}: whole\n", file);
    else
      fmt::print("{}: sealed as it is, a {} file\n", file, reseal(file).kind);
  }
  return 0;
}

}  // namespace

void add_seal(CLI::App& app, Action& action) {
  auto files = std::make_shared<std::vector<std::string>>();
  auto only_check = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "seal", "Seal HDF5 files that were edited on purpose or written by an older version");
  command->add_option("FILE", *files, "Basin's HDF5 files")->required();
  command->add_flag("--check", *only_check,
                    "only check whether the files are intact; exit code 4 if one isn't");
  command->callback([files, only_check, &action] {
    action = [files, only_check] { return *only_check ? check(*files) : seal(*files); };
  });
}

}  // namespace basin
