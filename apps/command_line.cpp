#include "apps/command_line.h"

#include <ATen/Context.h>
#include <torch/version.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <set>
#include <string>

#include "apps/arguments.h"
#include "apps/subcommands.h"
#include "apps/usage.h"
#include "core/build_info.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "core/messages.h"
#include "core/provenance.h"
#include "core/runtime.h"

namespace basin {
namespace {

// These handle interruption themselves, most of them by saving a state to resume from; all others end at
// once.
const std::set<std::string> kInterruptible = {"train", "sweep",   "tune",  "run-cell",
                                              "probe", "measure", "audit", "landscape"};

const char kExitCodes[] = R"(Exit codes:
  0  done
  1  some run or measurement failed, or something unforeseen
  2  study, option or command line makes no sense
  3  data missing, or not what it claims to be
  4  file unreadable, unwritable, or not one of ours
  5  no such device
  6  arithmetic that can't go on
  7  another process of the run is gone; what is on disk can be gone on from
  130, 143  interrupted; the state is on disk)";

/// The version of the program and of what its numbers depend on.
std::string version_text() {
  return fmt::format("basin {} (commit {}{}, {}, libtorch {}, {}{})", build_version(),
                     std::string(build_git_commit()).substr(0, 12),
                     std::string(build_git_dirty()) == "true" ? " with changes" : "", build_compiler(),
                     TORCH_VERSION, build_libraries(), at::hasCUDA() ? ", CUDA" : "");
}

int run(int argc, char** argv) {
  CLI::App app(
      "Basin: how batch size, optimiser and sharpness are related. docs/ has a page on each subcommand.",
      "basin");
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text);
  app.footer(kExitCodes);
  Action action;
  add_init(app, action);
  add_train(app, action);
  add_probe(app, action);
  add_measure(app, action);
  add_audit(app, action);
  add_sweep(app, action);
  add_tune(app, action);
  add_status(app, action);
  add_collect(app, action);
  add_data(app, action);
  add_scaling(app, action);
  add_landscape(app, action);
  add_forecast(app, action);
  add_inspect(app, action);
  add_recover(app, action);
  add_seal(app, action);
  add_completion(app, action);
  add_help(app, action);
  add_workers(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    throw ConfigError(usage_error(app, error));
  }
  if (kInterruptible.count(app.get_subcommands().front()->get_name())) install_interrupt_handlers();
  return action();
}

}  // namespace

void say_fault(const std::string& line) {
  fmt::print(stderr, "{} {}\n", in_colour(Colour::red, "basin:"), line);
}

int run_command_line(int argc, char** argv) {
  tune_allocator();
  exit_on_interrupt();
  remember_command_line(argc, argv);
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    say_fault(error.what());
    return error.exit_code();
  } catch (const std::filesystem::filesystem_error& error) {
    say_fault(one_line(error));
    return IoError("").exit_code();
  } catch (const std::exception& error) {
    say_fault(one_line(error));
    return 1;
  }
}

WorkerProgram this_program() { return {"/proc/self/exe", at::hasCUDA() ? nullptr : run_command_line}; }

}  // namespace basin
