// defines: FileLock, one process at a time.
#pragma once

#include <optional>
#include <string>

namespace basin {

/// An advisory lock (flock) on a file, held as long as this lives; the kernel lets go of it when the process dies however it
/// dies, so nothing stale stays. On a network disk it needs flock there (NFS 4 has it). IoError "cannot lock PATH: ..." where
/// the file system has no locks.
///
/// While it is held alone, the file says by whom ("pid 1234 on host abc"), for the error of those who are refused.
class FileLock {
 public:
  /// IoError "WHAT: in use by pid 1234 on host abc (lock PATH)" where another process has it.
  FileLock(const std::string& path, const std::string& what);
  /// Nothing where another process has it.
  static std::optional<FileLock> attempt(const std::string& path);
  /// Waits for it.
  static FileLock wait(const std::string& path);
  /// Together with others who share it; waits for one who has it alone. The file doesn't name them.
  static FileLock share(const std::string& path);

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
