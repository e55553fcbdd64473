// defines: the subcommands of `basin`, one file each.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace basin {

/// What a subcommand does once its arguments are parsed; returns the exit code. Errors are thrown; run_command_line() reports
/// them.
using Action = std::function<int()>;

/// Each adds its subcommand to `app` and sets `action` in the callback that CLI11 calls when the subcommand
/// is chosen. A new subcommand is one file in commands/, one line here and one in command_line.cpp's list.
void add_init(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_probe(CLI::App& app, Action& action);
void add_measure(CLI::App& app, Action& action);
void add_audit(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);
void add_tune(CLI::App& app, Action& action);
void add_status(CLI::App& app, Action& action);
void add_collect(CLI::App& app, Action& action);
void add_data(CLI::App& app, Action& action);
void add_scaling(CLI::App& app, Action& action);
void add_landscape(CLI::App& app, Action& action);
void add_forecast(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_recover(CLI::App& app, Action& action);
void add_seal(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_help(CLI::App& app, Action& action);
/// Hidden, what a sweep starts in worker processes:
/// `basin run-cell FOLDER [--no-probes] [--ranks N]`: trains what FOLDER/cell.toml says, then probes it.
/// `basin time-cell FOLDER BATCH...`: FOLDER/cell.toml's micro-benchmark for the cost model, printed as TOML.
void add_workers(CLI::App& app, Action& action);

}  // namespace basin
