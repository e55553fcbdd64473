#include "tests/support/run_binary.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/support/environment.h"

namespace basin::testing {
namespace {

std::string temporary_file() {
  char pattern[] = "/tmp/basin-output-XXXXXX";
  const int descriptor = ::mkstemp(pattern);
  if (descriptor < 0) throw std::runtime_error("no temporary file");
  ::close(descriptor);
  return pattern;
}

void redirect(const std::string& path, int to) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_TRUNC);
  if (descriptor < 0) ::_exit(126);
  ::dup2(descriptor, to);
  ::close(descriptor);
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

RunningBinary::RunningBinary(const std::vector<std::string>& arguments)
    : out_path_(temporary_file()), err_path_(temporary_file()) {
  std::string binary = environment("BASIN_BINARY");
  std::vector<char*> argv{binary.data()};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ > 0) return;
  redirect(out_path_, STDOUT_FILENO);
  redirect(err_path_, STDERR_FILENO);
  ::execv(binary.c_str(), argv.data());  // NOLINT(clang-analyzer-optin.taint.GenericTaint): ctest names it
  ::_exit(127);
}

RunningBinary::~RunningBinary() {
  if (!reaped_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
  }
  ::unlink(out_path_.c_str());
  ::unlink(err_path_.c_str());
}

void RunningBinary::send(int signal) { ::kill(pid_, signal); }

bool RunningBinary::alive() {
  if (!reaped_) reaped_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  return !reaped_;
}

BinaryResult RunningBinary::wait() {
  if (!reaped_) ::waitpid(pid_, &status_, 0);
  reaped_ = true;
  const int code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  return {code, text_of(out_path_), text_of(err_path_)};
}

BinaryResult run_binary(const std::vector<std::string>& arguments) { return RunningBinary(arguments).wait(); }

}  // namespace basin::testing
