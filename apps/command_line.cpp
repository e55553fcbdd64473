#include "apps/command_line.h"

#include <ATen/Context.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <set>
#include <string>

#include "apps/arguments.h"
#include "apps/subcommands.h"
#include "apps/usage.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "core/provenance.h"
#include "core/runtime.h"

namespace basin {
namespace {

// They see to it themselves when they are interrupted, most of them by leaving a state to go on from; all others end at
// once.
const std::set<std::string> kInterruptible = {"train", "sweep", "tune",     "run-cell",
                                              "probe", "audit", "landscape"};

int run(int argc, char** argv) {
  CLI::App app(
      "Basin: how batch size, optimiser and sharpness go together. docs/ has a page on each subcommand.",
      "basin");
  app.require_subcommand(1);
  Action action;
  add_train(app, action);
  add_probe(app, action);
  add_audit(app, action);
  add_sweep(app, action);
  add_tune(app, action);
  add_collect(app, action);
  add_data(app, action);
  add_landscape(app, action);
  add_inspect(app, action);
  add_recover(app, action);
  add_workers(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    throw ConfigError(usage_error(app, error));
  }
  if (kInterruptible.count(app.get_subcommands().front()->get_name())) install_interrupt_handlers();
  return action();
}

}  // namespace

int run_command_line(int argc, char** argv) {
  tune_allocator();
  exit_on_interrupt();
  remember_command_line(argc, argv);
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    std::fprintf(stderr, "basin: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "basin: %s\n", one_line(error).c_str());
    return 1;
  }
}

WorkerProgram this_program() { return {"/proc/self/exe", at::hasCUDA() ? nullptr : run_command_line}; }

}  // namespace basin
