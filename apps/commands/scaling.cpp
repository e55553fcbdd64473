#include <CLI/CLI.hpp>

#include "apps/arguments.h"
#include "apps/output/scaling_table.h"
#include "apps/subcommands.h"
#include "core/progress.h"
#include "ranks/command_ranks.h"
#include "runs/folder.h"
#include "sweep/part.h"
#include "sweep/scaling/file.h"

namespace basin {
namespace {

struct ScalingArguments {
  std::string folder;
  std::vector<std::string> sets;
  RankScalingRequest request;
  int64_t cell = 0;
  int ranks = 1;
};

int run_scaling(const ScalingArguments& arguments) {
  const Study study = read_study(frozen_study(arguments.folder), arguments.sets);
  const std::vector<Cell> all = expand(study);
  const std::vector<Cell> cells =
      arguments.cell > 0 ? cells_of({.cell = arguments.cell}, all) : cells_to_scale(all);
  CommandRanks ranks(arguments.ranks);
  return ranks.run([&] {
    const std::string path = arguments.folder + "/scaling.h5";
    Progress progress("scaling", 100, "%", ranks.is_first() && cells.front().options.runtime.progress);
    const RankScaling found = measure_rank_scaling(cells, ranks.group(), arguments.request, [&](double done) {
      if (done < 1) progress.update(100 * done);
    });
    progress.finish(100);
    if (!ranks.is_first()) return 0;
    write_scaling_file(path, study, cells, found);
    print_scaling(found);
    fmt::print("{}; for tables and a figure, once the sweep has runs: python -m basin.report {}\n", path,
               arguments.folder);
    return 0;
  });
}

}  // namespace

void add_scaling(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<ScalingArguments>();
  CLI::App* command = app.add_subcommand(
      "scaling", "Measure what more ranks bring to a sweep's runs: updates, Hessian products, sums");
  command->add_option("DIR", arguments->folder, "folder of a sweep")->required();
  take_above_zero(*command->add_option("--cell", arguments->cell,
                                       "number of a run in the list of `basin sweep --dry-run`; default: for "
                                       "each optimiser one of its largest batch size"));
  command->add_option("--rounds", arguments->request.rounds, "how often each number of ranks is timed (5)")
      ->check(CLI::Range(1, 1000));
  take_above_zero(*command->add_option("--seconds", arguments->request.seconds,
                                       "of updates at each batch size, and of Hessian products (1)"));
  add_ranks_option(*command, arguments->ranks);
  add_set_option(*command, arguments->sets);
  command->callback([arguments, &action] { action = [arguments] { return run_scaling(*arguments); }; });
}

}  // namespace basin
