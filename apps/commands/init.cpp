#include <CLI/CLI.hpp>

#include <filesystem>

#include "apps/arguments.h"
#include "apps/subcommands.h"
#include "core/error.h"
#include "core/files.h"
#include "core/nearest.h"
#include "sweep/cost_model.h"
#include "sweep/plan.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

/// Where the studies that come with the program lie: the same in the build tree, after install and in the wheel.
fs::path studies_folder() {
  return fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "share/basin/configs";
}

std::vector<std::string> study_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(studies_folder(), error))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  if (error) throw IoError(fmt::format("{}: {}", studies_folder().string(), error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

std::string text_of(const std::string& name) {
  const std::vector<std::string> known = study_names();
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw ConfigError(unknown_name("study", name, known));
  return read_file((studies_folder() / (name + ".toml")).string());
}

// By round figures, for nothing is measured here. A set whose data.path is still to be named has no sizes yet.
std::string probe_cost_of(const std::string& file) {
  try {
    const SweepPlan plan = plan_sweep(read_study(file, {}), SweepPaths(file + ".out"), {});
    return probe_cost_warning(plan, CostModel(plan.cells, plan.probed));
  } catch (const ConfigError&) {
    return "";
  }
}

int init(const std::string& file, const std::string& from) {
  const std::string text = text_of(from);
  if (fs::exists(file)) throw ConfigError(file + ": exists already; choose another file");
  write_file_atomically(file, text);
  fmt::print("{0}: a copy of the study {1}. To see what it would cost: basin sweep {0} --dry-run\n", file,
             from);
  if (const std::string warning = probe_cost_of(file); !warning.empty())
    fmt::print("note: by rough figures {}\n", warning);
  return 0;
}

}  // namespace

void add_init(CLI::App& app, Action& action) {
  auto file = std::make_shared<std::string>("study.toml");
  auto from = std::make_shared<std::string>("quick");
  CLI::App* command = app.add_subcommand("init", "Write a commented study file to start from");
  command->add_option("FILE", *file, "file to write; an existing file is never overwritten")
      ->capture_default_str();
  CLI::Option* const study =
      command->add_option("--from", *from, "study to copy, one of those that come with Basin")
          ->capture_default_str();
  offer(*study, Offer::one, study_names);
  command->callback([file, from, &action] { action = [file, from] { return init(*file, *from); }; });
}

}  // namespace basin
