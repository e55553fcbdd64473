#include "sweep/claims.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace basin {

Claims::Claims(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) throw IoError(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
}

Claims::~Claims() { ::close(descriptor_); }

bool Claims::take(int64_t number) { return set(number, F_WRLCK); }

void Claims::release(int64_t number) { set(number, F_UNLCK); }

bool Claims::set(int64_t number, short type) {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = number;
  range.l_len = 1;
  int result = ::fcntl(descriptor_, F_OFD_SETLK, &range);
  while (result < 0 && errno == EINTR) result = ::fcntl(descriptor_, F_OFD_SETLK, &range);
  if (result == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  throw IoError(fmt::format("cannot lock {}: {}", path_, std::strerror(errno)));
}

}  // namespace basin
