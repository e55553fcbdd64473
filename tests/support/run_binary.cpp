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

void redirect(int from, int to) {
  if (::dup2(from, to) < 0) ::_exit(126);
}

int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

CapturedOutput::CapturedOutput() : path_("/tmp/basin-output-XXXXXX"), descriptor_(::mkstemp(path_.data())) {
  if (descriptor_ < 0) throw std::runtime_error("no temporary file");
  ::fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
}

CapturedOutput::~CapturedOutput() {
  ::close(descriptor_);
  ::unlink(path_.c_str());
}

std::string CapturedOutput::text() const {
  std::ostringstream text;
  text << std::ifstream(path_).rdbuf();
  return text.str();
}

RunningBinary::RunningBinary(const std::vector<std::string>& arguments) {
  std::string binary = environment("BASIN_BINARY");
  std::vector<char*> argv{binary.data()};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ > 0) return;
  redirect(out_.descriptor(), STDOUT_FILENO);
  redirect(error_.descriptor(), STDERR_FILENO);
  ::execv(binary.c_str(), argv.data());  // NOLINT(clang-analyzer-optin.taint.GenericTaint): ctest names it
  ::_exit(127);
}

RunningBinary::~RunningBinary() {
  if (!reaped_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
  }
}

void RunningBinary::send(int signal) { ::kill(pid_, signal); }

bool RunningBinary::alive() {
  if (!reaped_) reaped_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  return !reaped_;
}

BinaryResult RunningBinary::wait() {
  if (!reaped_) ::waitpid(pid_, &status_, 0);
  reaped_ = true;
  return {exit_code_of(status_), out_.text(), error_.text()};
}

BinaryResult run_binary(const std::vector<std::string>& arguments) {
  ForkServer* server = ForkServer::of_this_process();
  if (server == nullptr) return RunningBinary(arguments).wait();
  const CapturedOutput out, error;
  const int status = server->run(arguments, out.descriptor(), error.descriptor());
  return {exit_code_of(status), out.text(), error.text()};
}

}  // namespace basin::testing
