// defines: ProcessPool, worker processes that die with their parent; ProcessJob, ProcessResult.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"

namespace basin {

/// What a worker process runs.
struct WorkerProgram {
  std::string path;  // not searched for
  /// main() of `path` where that is this very program and may be called in a fork of it, which spares a worker the
  /// loading and unloading of its libraries (torch's take half a second); null: execute `path`.
  int (*main)(int argc, char** argv) = nullptr;
};

/// A program to run. stdin is /dev/null; stdout and stderr are appended to `log`.
struct ProcessJob {
  std::string id;
  WorkerProgram program;
  std::vector<std::string> arguments;  // without the program's own name
  std::string log;
  std::vector<std::pair<std::string, std::string>> environment;  // set on top of ours
  double timeout_seconds = 0;                                    // 0: none; past it the process is killed
};

struct ProcessResult {
  std::string id;
  int exit_code = -1;  // -1 where a signal ended it, or another part of this program took its end away
  int signal = 0;
  bool timed_out = false;
  double seconds = 0;
  double peak_megabytes = 0;
  bool ok() const { return exit_code == 0 && signal == 0; }
  /// "exit code 4", "killed by signal 9 (out of memory?)", "no end within 10 s", "its end was not seen".
  std::string describe() const;
};

/// Worker processes in process groups of their own, so that Ctrl-C on the terminal reaches only the
/// parent, which passes it on once. A fork has only the thread that forked, so WorkerProgram::main is
/// called only while this process has no other; else the program is executed. When the parent dies by
/// whatever means, the kernel kills its workers (PR_SET_PDEATHSIG), so start() belongs on the main thread:
/// the kernel watches the thread that forked.
class ProcessPool {
 public:
  ProcessPool() = default;
  ~ProcessPool();  // kills and reaps what still runs
  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;

  /// Throws IoError where the log can't be opened or no process can be made. A program that can't be executed ends with
  /// exit code 127.
  void start(const ProcessJob& job);
  /// Those that have ended; waits up to `wait_seconds` for the first.
  std::vector<ProcessResult> collect(double wait_seconds);
  void signal_all(int signal);
  size_t running() const { return workers_.size(); }
  /// Seconds since the worker of this id began; 0 where there is none.
  double running_for(const std::string& id) const;

 private:
  struct Worker {
    std::string id;
    int pid;
    Clock::time_point start;
    double timeout_seconds;
    bool timed_out;
  };
  std::vector<ProcessResult> collect_now();
  std::vector<Worker> workers_;
};

}  // namespace basin
