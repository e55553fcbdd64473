// defines: whole-file reads and atomic, durable writes.
#pragma once

#include <functional>
#include <string>

namespace basin {

/// Throws IoError with the path and errno's text.
std::string read_file(const std::string& path);

/// Neither atomic nor durable: for files of one process.
void write_file(const std::string& path, const std::string& text);

/// Writes `text` to path.tmp, fsyncs, renames onto path, fsyncs the folder: a reader sees the old file or the new one. Waits for
/// another process or thread that is writing the same file (a lock on path.tmp); the last one's stays.
void write_file_atomically(const std::string& path, const std::string& text);

/// The same for a writer that needs a path of its own (HDF5): `write` fills the temporary file, which is removed on error.
void replace_file_atomically(const std::string& path,
                             const std::function<void(const std::string& temporary)>& write);

void make_folders(const std::string& path);  // like mkdir -p; IoError where that fails
void fsync_path(const std::string& path);    // a file or a folder

}  // namespace basin
