// defines: run_command_line(), what main() does; this_program(), it as a worker's program.
#pragma once

#include "core/process_pool.h"

namespace basin {

/// Parses, runs the subcommand, reports errors on stderr; returns the exit code.
int run_command_line(int argc, char** argv);

/// The process pool of `basin`. With CUDA it has no `main`: the driver can't be used in a fork of a process that has
/// looked for devices.
WorkerProgram this_program();

}  // namespace basin
