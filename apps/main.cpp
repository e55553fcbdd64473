#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "apps/command_line.h"
#include "core/error.h"
#include "core/runtime.h"
#include "ranks/rank_group.h"

namespace {

// A stream that the caller closed is /dev/null: else the next file that is opened has its number, and lines could end up in it.
void open_missing_streams() {
  for (const int stream : {0, 1, 2})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", O_RDWR);
}

// What was printed is a result too: `basin status --json > FILE` on a full disk must not end with 0. A reader that left (`| head`)
// has what it wanted.
int with_output_written(int exit_code) {
  errno = 0;
  const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!failed || errno == EPIPE || exit_code != 0) return exit_code;
  basin::say_fault(std::string("cannot write standard output") +
                   (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
  return basin::IoError("").exit_code();
}

}  // namespace

// A rank ends by returning: the others now and then took so quick an end as end_process() is for a lost rank.
int main(int argc, char** argv) {
  open_missing_streams();
  const int exit_code = with_output_written(basin::run_command_line(argc, argv));
  if (basin::RankGroup::has_joined()) return exit_code;
  basin::end_process(exit_code);
}
