#include "tests/support/run_binary.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/support/environment.h"
#include "tests/support/fork_client.h"

namespace basin::testing {
namespace {

std::string temporary_file() {
  char pattern[] = "/tmp/basin-output-XXXXXX";
  const int descriptor = ::mkstemp(pattern);
  if (descriptor < 0) throw std::runtime_error("no temporary file");
  ::close(descriptor);
  return pattern;
}

int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

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
  return {exit_code_of(status_), text_of(out_path_), text_of(err_path_)};
}

BinaryResult run_binary(const std::vector<std::string>& arguments) {
  ForkServer* server = ForkServer::of_this_process();
  if (server == nullptr) return RunningBinary(arguments).wait();
  const std::string out_path = temporary_file(), error_path = temporary_file();
  const int out = ::open(out_path.c_str(), O_WRONLY | O_CLOEXEC),
            error = ::open(error_path.c_str(), O_WRONLY | O_CLOEXEC);
  const int status = server->run(arguments, out, error);
  ::close(out);
  ::close(error);
  const BinaryResult result{exit_code_of(status), text_of(out_path), text_of(error_path)};
  ::unlink(out_path.c_str());
  ::unlink(error_path.c_str());
  return result;
}

}  // namespace basin::testing
