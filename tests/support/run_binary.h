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
  std::string out_path_, err_path_;
  int status_ = 0;
  bool reaped_ = false;
};

BinaryResult run_binary(const std::vector<std::string>& arguments);

}  // namespace basin::testing
