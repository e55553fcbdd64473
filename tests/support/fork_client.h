// defines: ForkServer, calls of the program as forks of one process that has loaded its libraries already.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace basin::testing {

/// See tests/fork_server/server.cpp. The server starts at the first call and ends when this process does; one call at a time.
class ForkServer {
 public:
  /// Null where BASIN_FORK_SERVER names no library.
  static ForkServer* of_this_process();
  /// Status, as of waitpid(), of `basin` with these arguments, and with this process's environment, folder, limits and ignored signals.
  int run(const std::vector<std::string>& arguments, int out, int error);

 private:
  explicit ForkServer(const char* library);
  int answer() const;
  int socket_ = -1;
};

}  // namespace basin::testing
