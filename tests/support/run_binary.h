// defines: RunningBinary and run_binary(), the program `basin` seen from outside.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace basin::testing {

struct BinaryResult {
  int exit_code = -1;  // 128 + signal where one ended it
  std::string out, err;
};

/// A temporary file for what a process prints.
class CapturedOutput {
 public:
  CapturedOutput();
  ~CapturedOutput();
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;
  int descriptor() const { return descriptor_; }
  std::string text() const;

 private:
  std::string path_;
  int descriptor_;
};

/// `basin` (environment variable BASIN_BINARY, set by ctest) as a child process with its output in temporary files.
class RunningBinary {
 public:
  explicit RunningBinary(const std::vector<std::string>& arguments);
  ~RunningBinary();
  RunningBinary(const RunningBinary&) = delete;
  RunningBinary& operator=(const RunningBinary&) = delete;
  pid_t pid() const { return pid_; }
  void send(int signal);
  bool alive();
  BinaryResult wait();

 private:
  pid_t pid_;
  CapturedOutput out_, error_;
  int status_ = 0;
  bool reaped_ = false;
};

BinaryResult run_binary(const std::vector<std::string>& arguments);

}  // namespace basin::testing
