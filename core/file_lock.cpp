#include "core/file_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/provenance.h"

namespace basin {
namespace {

// The locked file's descriptor, or -1 where another process has it.
int lock_file(const std::string& path, int how) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  int result = descriptor < 0 ? -1 : ::flock(descriptor, how);
  while (descriptor >= 0 && result < 0 && errno == EINTR) result = ::flock(descriptor, how);
  if (result == 0) return descriptor;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (error == EWOULDBLOCK) return -1;
  throw IoError(fmt::format("cannot lock {}: {}", path, std::strerror(error)));
}

// Empty where the file names nobody.
std::string holder_of(const std::string& path) {
  std::ifstream file(path);
  std::string holder;
  std::getline(file, holder);
  return holder;
}

// Also where it is dead and its parent hasn't asked how it ended.
bool has_ended(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string fields;
  if (!std::getline(stat, fields)) return ::kill(pid, 0) != 0 && errno == ESRCH;
  return fields.compare(fields.rfind(')') + 1, 2, " Z") == 0;  // the name in brackets may hold anything
}

std::string signature(pid_t pid) { return fmt::format("pid {} on host {}", pid, host_name()); }

// IoError where another process has it.
int lock_at_once(const std::string& path, const std::string& what, int how) {
  const int descriptor = lock_file(path, how | LOCK_NB);
  if (descriptor >= 0) return descriptor;
  const std::string holder = holder_of(path);
  throw IoError(
      fmt::format("{}: in use by {} (lock {})", what, holder.empty() ? "another process" : holder, path));
}

}  // namespace

FileLock::FileLock(const std::string& path, const std::string& what)
    : descriptor_(lock_at_once(path, what, LOCK_EX)) {
  sign();
}

std::optional<FileLock> FileLock::attempt(const std::string& path) {
  const int descriptor = lock_file(path, LOCK_EX | LOCK_NB);
  if (descriptor < 0) return std::nullopt;
  FileLock lock(descriptor);
  lock.sign();
  return lock;
}

FileLock FileLock::wait(const std::string& path) {
  FileLock lock(lock_file(path, LOCK_EX));
  lock.sign();
  return lock;
}

FileLock FileLock::share(const std::string& path) { return FileLock(lock_file(path, LOCK_SH)); }

FileLock FileLock::share(const std::string& path, const std::string& what) {
  FileLock lock(lock_at_once(path, what, LOCK_SH));
  if (::ftruncate(lock.descriptor_, 0) != 0) errno = 0;  // the name of one that was killed
  return lock;
}

bool FileLock::holder_was_killed(const std::string& path) {
  const std::string holder = holder_of(path);
  pid_t pid = 0;
  return std::sscanf(holder.c_str(), "pid %d ", &pid) == 1 && holder == signature(pid) && has_ended(pid);
}

FileLock::FileLock(int descriptor) : descriptor_(descriptor) {}

FileLock::FileLock(FileLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), alone_(other.alone_) {}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  if (alone_ && ::ftruncate(descriptor_, 0) != 0)
    errno = 0;  // an old name is written over by the next holder
  ::close(descriptor_);
}

// A full disk takes no name; the lock holds without one.
void FileLock::sign() {
  alone_ = true;
  const std::string holder = signature(::getpid()) + "\n";
  if (::ftruncate(descriptor_, 0) == 0 && ::pwrite(descriptor_, holder.data(), holder.size(), 0) < 0)
    errno = 0;
}

}  // namespace basin
