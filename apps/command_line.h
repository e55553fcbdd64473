// defines: run_command_line(), what main() does; say_fault(); this_program(), the same program as a worker's.
#pragma once

#include "core/process_pool.h"

namespace basin {

/// Parses, runs the subcommand, reports errors on stderr; returns the exit code.
int run_command_line(int argc, char** argv);

/// "basin: LINE" on stderr.
void say_fault(const std::string& line);

/// The program that workers run. With CUDA it has no `main`: the driver can't be used in a fork of a process
/// that has looked for devices.
WorkerProgram this_program();

}  // namespace basin
