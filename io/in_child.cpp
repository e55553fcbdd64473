#include "io/in_child.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>

#include "core/error.h"
#include "io/damaged.h"

namespace basin {
namespace {

// Not those of a program that gives up by itself, a sanitizer's 1 say.
enum Outcome : int { done = 40, damaged, failed };

void write_all(int descriptor, const std::string& text) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(descriptor, text.data() + written, text.size() - written);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) written += static_cast<size_t>(n);
  }
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t n = ::read(descriptor, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(n));
  }
}

/// A crash in here is an answer and not a fault of the program: no handler, no core file, none of glibc's last words.
void crash_quietly() {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGINT, SIGTERM})
    std::signal(signal, SIG_DFL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const int nowhere = ::open("/dev/null", O_WRONLY);
  if (nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
}

[[noreturn]] void child(int descriptor, double seconds, const std::function<std::string()>& work) {
  crash_quietly();
  ::alarm(static_cast<unsigned>(std::ceil(seconds)));
  Outcome outcome = done;
  try {
    write_all(descriptor, work());
  } catch (const DamagedError& error) {
    outcome = damaged;
    write_all(descriptor, error.what());
  } catch (const std::exception& error) {
    outcome = failed;
    write_all(descriptor, error.what());
  }
  ::_exit(outcome);
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string answer(const std::string& what, double seconds, int status, std::string text) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (signal == SIGALRM)
      throw DamagedError(fmt::format("{}: damaged: not read within {:g} s", what, std::ceil(seconds)));
    if (signal == SIGINT || signal == SIGTERM) throw IoError(what + ": interrupted");
    throw DamagedError(fmt::format("{}: damaged: it crashes HDF5's library ({})", what, strsignal(signal)));
  }
  if (WEXITSTATUS(status) == done) return text;
  if (WEXITSTATUS(status) == damaged) throw DamagedError(text);
  if (WEXITSTATUS(status) == failed) throw IoError(text);
  throw IoError(fmt::format("{}: the process that was reading it stopped ({})", what, WEXITSTATUS(status)));
}

}  // namespace

std::string in_child(const std::string& what, double seconds, const std::function<std::string()>& work) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0)
    throw IoError(fmt::format("{}: cannot create a pipe to read it: {}", what, std::strerror(errno)));
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    child(ends[1], seconds, work);
  }
  const int error = errno;
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    throw IoError(fmt::format("{}: cannot create a process to read it: {}", what, std::strerror(error)));
  }
  std::string text = read_all(ends[0]);
  ::close(ends[0]);
  return answer(what, seconds, wait_for(pid), std::move(text));
}

}  // namespace basin
