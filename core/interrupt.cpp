#include "core/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "core/error.h"

namespace basin {
namespace {

volatile std::sig_atomic_t seen = 0;

void remember(int signal) {
  // The user means it. A second SIGTERM is no second thought: a scheduler sends it to every process, and a parent to its workers.
  if (seen != 0 && signal == SIGINT) ::_exit(128 + signal);
  seen = signal;
}

[[noreturn]] void leave(int signal) { ::_exit(128 + signal); }

void handle_with(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

void install_interrupt_handlers() { handle_with(remember); }

void exit_on_interrupt() { handle_with(leave); }

int interrupt_signal() { return seen; }

void throw_if_interrupted() {
  if (seen != 0) throw Interrupted(seen);
}

void reset_interrupt() { seen = 0; }

}  // namespace basin
