// defines: SmallDisk and FileSizeLimit, two ways to let a disk be full.
#pragma once

#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <string>

namespace basin::testing {

/// A tmpfs of `bytes` mounted on a folder that exists; not everybody may mount.
class SmallDisk {
 public:
  SmallDisk(std::string folder, size_t bytes) : folder_(std::move(folder)) {
    mounted_ = ::mount("tmpfs", folder_.c_str(), "tmpfs", 0, size_option(bytes).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }
  bool resize(size_t bytes) {
    return ::mount("tmpfs", folder_.c_str(), "tmpfs", MS_REMOUNT, size_option(bytes).c_str()) == 0;
  }

 private:
  static std::string size_option(size_t bytes) { return "size=" + std::to_string(bytes); }
  std::string folder_;
  bool mounted_ = false;
};

/// No file of this process and its children may grow past `bytes`: what a full disk looks like to write(),
/// without privileges.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace basin::testing
