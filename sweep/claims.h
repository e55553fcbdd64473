// defines: Claims, things that processes share out among themselves by number.
#pragma once

#include <cstdint>
#include <string>

namespace basin {

/// One file, whatever the number of claims: a claim is a lock on one of its bytes, that of its number (fcntl's F_OFD_SETLK, a
/// byte-range lock as NFS has it). The kernel releases it when the process dies, however it dies, so no stale claim remains.
/// IoError "cannot lock PATH: ..." where the file system has no locks.
class Claims {
 public:
  explicit Claims(const std::string& path);
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;
  ~Claims();

  /// False where another process has it; true again where this object has it.
  bool take(int64_t number);
  void release(int64_t number);

 private:
  bool set(int64_t number, short type);

  std::string path_;
  int descriptor_;
};

}  // namespace basin
