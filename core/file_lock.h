// defines: FileLock, one process at a time.
#pragma once

#include <optional>
#include <string>

namespace basin {

/// An advisory lock (flock) on a file, held as long as this lives; the kernel releases it when the process
/// dies, however it dies, so no stale lock remains. A network disk must support flock (NFS 4 does). IoError
/// "cannot lock PATH: ..." where the file system has no locks.
///
/// While it is held exclusively, the file names the holder ("pid 1234 on host abc"),
/// for the error message of other processes.
class FileLock {
 public:
  /// IoError "WHAT: in use by pid 1234 on host abc (lock PATH)" where another process has it.
  FileLock(const std::string& path, const std::string& what);
  /// Nothing where another process has it.
  static std::optional<FileLock> attempt(const std::string& path);
  /// Waits for it.
  static FileLock wait(const std::string& path);
  /// A lock shared with others; waits for an exclusive holder. The file doesn't name the holders.
  static FileLock share(const std::string& path);
  /// The same, at once: IoError as above where another process has it alone.
  static FileLock share(const std::string& path, const std::string& what);
  /// Whether the file still names a process of this host that has ended: it was killed. Takes no lock. False
  /// where the holder is on another host, or another process has its number now.
  static bool holder_was_killed(const std::string& path);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int descriptor);  // locked
  void sign();

  int descriptor_;  // -1: moved from
  bool alone_ = false;
};

}  // namespace basin
