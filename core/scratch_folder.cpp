#include "core/scratch_folder.h"

#include <cstdlib>
#include <cstring>

#include "core/error.h"

namespace basin {

ScratchFolder::ScratchFolder(const std::string& name) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) throw IoError("cannot find a folder for temporary files (TMPDIR): " + error.message());
  path_ = (parent / (name + "-XXXXXX")).string();
  if (::mkdtemp(path_.data()) == nullptr)
    throw IoError("cannot make folder " + path_ + ": " + std::strerror(errno));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace basin
