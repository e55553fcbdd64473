#include "core/process_pool.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "core/runtime.h"

extern char** environ;

namespace basin {
namespace {

// Our environment with the job's settings in place of ours.
std::vector<std::string> merged_environment(const ProcessJob& job) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool replaced = std::any_of(job.environment.begin(), job.environment.end(),
                                      [&](const auto& setting) { return setting.first == name; });
    if (!replaced) merged.push_back(text);
  }
  for (const auto& [name, value] : job.environment) merged.push_back(fmt::format("{}={}", name, value));
  return merged;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

int open_log(const std::string& path) {
  const int log = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) throw IoError(path + ": cannot be opened for a worker's output: " + std::strerror(errno));
  return log;
}

bool has_one_thread() {
  std::error_code unknown;
  const auto threads = std::filesystem::directory_iterator("/proc/self/task", unknown);
  return !unknown && std::distance(begin(threads), end(threads)) == 1;
}

// After fork of a process with threads only async-signal-safe calls are allowed: no allocation here.
void detach(int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before prctl
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
}

[[noreturn]] void execute(const char* program, char* const* arguments, char* const* environment) {
  execve(program, arguments, environment);
  static const char message[] = "cannot execute the worker's program\n";
  if (write(STDERR_FILENO, message, sizeof message - 1) < 0) _exit(126);
  _exit(127);
}

// In a fork of a process without threads.
[[noreturn]] void call(int (*main)(int, char**), std::vector<char*> arguments, const ProcessJob& job) {
  close_range(STDERR_FILENO + 1, ~0U, 0);  // as exec would: locks and logs of the parent
  for (const auto& [name, value] : job.environment) setenv(name.c_str(), value.c_str(), 1);
  end_process(main(static_cast<int>(arguments.size()) - 1, arguments.data()));
}

}  // namespace

std::string ProcessResult::describe() const {
  if (timed_out) return fmt::format("not finished within {:.0f} s", seconds);
  if (signal == SIGKILL) return "killed by signal 9 (out of memory?)";
  if (signal != 0) return fmt::format("killed by signal {} ({})", signal, strsignal(signal));
  if (exit_code < 0) return "its exit status was lost";
  return fmt::format("exit code {}", exit_code);
}

ProcessPool::~ProcessPool() {
  signal_all(SIGKILL);
  for (const Worker& worker : workers_) waitpid(worker.pid, nullptr, 0);
}

void ProcessPool::start(const ProcessJob& job) {
  std::vector<std::string> arguments = {job.program.path};
  arguments.insert(arguments.end(), job.arguments.begin(), job.arguments.end());
  std::vector<std::string> environment = merged_environment(job);
  const std::vector<char*> argv = pointers_to(arguments);
  const std::vector<char*> envp = pointers_to(environment);
  const int log = open_log(job.log);
  const bool forks_alone = job.program.main != nullptr && has_one_thread();
  std::cout.flush();  // else the worker would write what waits here as well
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const Clock::time_point start = Clock::now();
  const pid_t pid = fork();
  if (pid == 0) {
    detach(log, parent);
    if (forks_alone) call(job.program.main, argv, job);
    execute(job.program.path.c_str(), argv.data(), envp.data());
  }
  const int error = errno;
  close(log);
  if (pid < 0) throw IoError(std::string("cannot create a worker process: ") + std::strerror(error));
  workers_.push_back({job.id, pid, start, job.timeout_seconds, false});
}

std::vector<ProcessResult> ProcessPool::collect_now() {
  std::vector<ProcessResult> ended;
  for (size_t i = 0; i < workers_.size();) {
    Worker& worker = workers_[i];
    const double seconds = seconds_since(worker.start);
    if (worker.timeout_seconds > 0 && seconds > worker.timeout_seconds && !worker.timed_out) {
      worker.timed_out = true;
      kill(worker.pid, SIGKILL);
    }
    int status = 0;
    rusage usage = {};
    const pid_t ended_pid = wait4(worker.pid, &status, WNOHANG, &usage);
    if (ended_pid == 0 || (ended_pid < 0 && errno == EINTR)) {
      ++i;
      continue;
    }
    ProcessResult result{worker.id};
    const bool seen =
        ended_pid == worker.pid;  // else no child any more (ECHILD): where SIGCHLD is ignored, for one
    if (seen && WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    if (seen && WIFSIGNALED(status)) result.signal = WTERMSIG(status);
    result.timed_out = worker.timed_out;
    result.seconds = seconds;
    result.peak_megabytes = static_cast<double>(usage.ru_maxrss) / 1024;
    ended.push_back(result);
    workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return ended;
}

std::vector<ProcessResult> ProcessPool::collect(double wait_seconds) {
  const Clock::time_point start = Clock::now();
  while (true) {
    std::vector<ProcessResult> ended = collect_now();
    if (!ended.empty() || workers_.empty() || seconds_since(start) >= wait_seconds) return ended;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void ProcessPool::signal_all(int signal) {
  for (const Worker& worker : workers_) kill(worker.pid, signal);
}

double ProcessPool::running_for(const std::string& id) const {
  for (const Worker& worker : workers_) {
    if (worker.id == id) return seconds_since(worker.start);
  }
  return 0;
}

}  // namespace basin
