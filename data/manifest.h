// defines: Manifest, what is known about a published data set: files, layout, counts and SHA-256.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace basin {

enum class FileRole {
  records,
  images,
  labels,
  text
};  // CIFAR's records hold both; idx sets have a file for each

struct ManifestFile {
  std::string name;  // "data_batch_1.bin"; for idx the compressed name
  bool test = false;
  int64_t examples = 0;
  FileRole role = FileRole::records;
};

/// SHA-256 of every file, in the manifest's order, of one copy that is known to be in circulation; where each comes from stands
/// next to it.
struct KnownCopy {
  std::string pixels;  // what Dataset::pixels says about it
  std::vector<std::string> sha256;
  std::vector<std::string> unpacked_sha256 = {};  // of what the ".gz" files hold; empty where there are none
};

struct Manifest {
  std::string set;     // registry name
  std::string folder;  // the folder inside the official archive
  std::vector<ManifestFile> files;
  std::vector<KnownCopy> copies;
  bool must_be_known = false;  // contents that are no known copy are rejected instead of called "unverified"
  int64_t channels = 3, height = 32, width = 32;
  std::vector<int64_t> label_bytes = {
      10};                 // CIFAR: number of values of each leading byte; the last one is the class
  std::string names_file;  // class names, one per line; compared where it is there
  std::vector<std::string> class_names;
  // The official archive, or the one file of a text; empty where there is none.
  std::string archive_url, archive_sha256;

  bool is_text() const { return files.front().role == FileRole::text; }

  int64_t pixels_per_image() const { return channels * height * width; }
  int64_t record_bytes() const { return static_cast<int64_t>(label_bytes.size()) + pixels_per_image(); }
};

}  // namespace basin
