#include "data/import.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/files.h"
#include "data/readers.h"

namespace basin {
namespace fs = std::filesystem;
namespace {

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

void write_files(const Manifest& manifest, const std::vector<SourceFile>& files, const std::string& folder) {
  make_folders(folder);
  for (const SourceFile& file : files)
    write_file_atomically((fs::path(folder) / file.name).string(), file.stored);
  if (manifest.names_file.empty()) return;
  std::string names;
  for (const std::string& name : manifest.class_names) names += name + "\n";
  write_file_atomically((fs::path(folder) / manifest.names_file).string(), names);
}

}  // namespace

void require_new_folder(const std::string& out) {
  if (!fs::exists(out) || (fs::is_directory(out) && fs::is_empty(out))) return;
  throw IoError("cannot write " + out + ": it exists already");
}

Imported import_dataset(const Manifest& manifest, const std::string& source, const std::string& out_folder) {
  const std::string out = without_trailing_slash(out_folder);
  require_new_folder(out);
  const std::vector<SourceFile> files = read_source_files(manifest, source);
  const Dataset data = parse_set(manifest, files);  // throws for anything that is wrong
  const std::string partial = fmt::format("{}.partial-{}", out, ::getpid());
  try {
    write_files(manifest, files, partial);
    if (::rename(partial.c_str(), out.c_str()) != 0)
      throw IoError("cannot rename " + partial + " to " + out + ": " + std::strerror(errno));
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(partial, ignored);
    throw;
  }
  return {data.pixels, data.sha256, static_cast<int64_t>(files.size())};
}

}  // namespace basin
