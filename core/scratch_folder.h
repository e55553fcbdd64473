// defines: ScratchFolder, a temporary folder that is removed whatever happens.
#pragma once

#include <string>

namespace basin {

/// Made under the system's folder for temporary files with a name of its own; IoError where that fails.
/// Removed with all its contents when this object is destroyed, so whatever writes there must have ended.
class ScratchFolder {
 public:
  /// `name` begins the folder's name: "basin-timing".
  explicit ScratchFolder(const std::string& name);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace basin
