// defines: reading the files of a manifest from a folder or a .tar.gz, and telling which known copy they are.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "data/manifest.h"

namespace basin {

struct SourceFile {
  std::string where;   // for messages: "/data/train.bin" or "cifar.tar.gz:train.bin"
  std::string name;    // as found: an idx file may lack the manifest's ".gz"
  std::string stored;  // its bytes as they lie there
};

/// The members of an archive (tar, with or without gzip or xz, or zip) by their file names without folders: those of `wanted` that
/// it holds. DataError for one that isn't whole.
std::map<std::string, std::string> read_members(const std::string& path, const std::set<std::string>& wanted);

/// The manifest's files in its order, from `path`: a folder that holds them, a folder that holds
/// manifest.folder, an archive (.tar.gz, read in memory), or the file itself of a text. Throws DataError naming the first missing file.
std::vector<SourceFile> read_source_files(const Manifest& manifest, const std::string& path);

/// The pixels word of the known copy that all files together are, "unverified" where none of them is in any.
/// A mixture is damage, not a copy: DataError names the file that does not fit. So does any unknown file
/// where must_be_known.
std::string identify_copy(const Manifest& manifest, const std::vector<SourceFile>& files);

/// Decompressed bytes; bytes that are not gzip come back as they are. DataError for a truncated stream or a
/// wrong CRC-32.
std::string gunzip(const std::string& bytes, const std::string& where);

}  // namespace basin
