// defines: SIGINT and SIGTERM as a flag that long loops look at.
#pragma once

namespace basin {

/// After this SIGINT and SIGTERM only set a flag; a second SIGINT ends the process at once. For commands that
/// have a state worth keeping and check the flag.
void install_interrupt_handlers();
/// After this they end the process at once with exit code 128 + signal. For all other commands.
void exit_on_interrupt();
/// 0, or the number of the signal seen.
int interrupt_signal();
/// Throws Interrupted when a signal was seen. Call where the state on disk is complete.
void throw_if_interrupted();
/// For tests.
void reset_interrupt();

}  // namespace basin
