#include "core/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace basin {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  throw IoError("cannot " + what + " " + path + ": " + std::strerror(errno));
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

void write_all(int descriptor, const std::string& text, const std::string& path) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(descriptor, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      ::close(descriptor);
      errno = error;
      fail("write", path);
    }
    written += static_cast<size_t>(n);
  }
}

bool is_file_at(int descriptor, const std::string& path) {
  struct stat ours = {}, there = {};
  return ::fstat(descriptor, &ours) == 0 && ::stat(path.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/// FILE.tmp, made and locked (flock) for this object's life: two writers of one file take turns, in whatever process, on
/// whatever host. The lock of a writer that was killed is free, and the next one writes over what it left.
class Temporary {
 public:
  explicit Temporary(const std::string& path) : path_(path + ".tmp") {
    do take();
    while (!is_ours());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() { release(); }

  const std::string& path() const { return path_; }

 private:
  void take() {
    release();
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail("write", path_);
    int result = 0;
    do result = ::flock(descriptor_, LOCK_EX);
    while (result != 0 && errno == EINTR);
    locked_ = result == 0;  // on a file system without locks two writers at once are the user's to avoid
  }
  /// The writer that had the lock before has renamed or removed the file that we waited for.
  bool is_ours() const { return !locked_ || is_file_at(descriptor_, path_); }
  void release() {
    if (descriptor_ < 0) return;
    ::flock(descriptor_, LOCK_UN);  // a child process may have the descriptor too
    ::close(descriptor_);
  }

  std::string path_;
  int descriptor_ = -1;
  bool locked_ = false;
};

}  // namespace

std::string read_file(const std::string& path) {
  if (fs::is_directory(path)) throw IoError("cannot read " + path + ": it is a folder");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("read", path);
  std::string text;
  std::vector<char> block(1 << 16);  // an istreambuf_iterator would take a second for each 100 MB
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0)
    text.append(block.data(), static_cast<size_t>(in.gcount()));
  if (in.bad()) fail("read", path);
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) fail("write", path);
  write_all(descriptor, text, path);
  if (::close(descriptor) != 0) fail("write", path);
}

void write_file_atomically(const std::string& path, const std::string& text) {
  replace_file_atomically(path, [&](const std::string& temporary) { write_file(temporary, text); });
}

void replace_file_atomically(const std::string& path,
                             const std::function<void(const std::string& temporary)>& write) {
  const Temporary temporary(path);
  try {
    write(temporary.path());
    fsync_path(temporary.path());
    if (::rename(temporary.path().c_str(), path.c_str()) != 0)
      fail("rename " + temporary.path() + " to", path);
  } catch (...) {
    ::unlink(temporary.path().c_str());
    throw;
  }
  fsync_path(folder_of(path));
}

void make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw IoError("cannot make folder " + path + ": " + error.message());
}

void fsync_path(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail("open", path);
  const int result = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  // EINVAL: a file system without fsync (some network mounts); the rename is still atomic.
  if (result != 0 && error != EINVAL) {
    errno = error;
    fail("sync", path);
  }
}

}  // namespace basin
