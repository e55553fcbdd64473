#include "data/source_files.h"

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "data/dataset.h"

namespace basin {
namespace fs = std::filesystem;
namespace {

using ArchiveHandle = std::unique_ptr<archive, int (*)(archive*)>;

std::string without_gz(const std::string& name) {
  return name.size() > 3 && name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
}

/// The file's name in `folder`, as the manifest has it or decompressed; empty where neither is there.
std::string found_name(const fs::path& folder, const std::string& name) {
  for (const std::string& candidate : {name, without_gz(name)})
    if (fs::is_regular_file(folder / candidate)) return candidate;
  return "";
}

void check_class_names(const Manifest& manifest, const std::string& text, const std::string& where) {
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names != manifest.class_names)
    throw DataError(
        fmt::format("{}: its {} class names are not those of {}", where, names.size(), manifest.set));
}

std::vector<SourceFile> read_folder(const Manifest& manifest, const fs::path& path) {
  const std::string& first = manifest.files.front().name;
  const fs::path folder = found_name(path, first).empty() ? path / manifest.folder : path;
  if (found_name(folder, first).empty())
    throw DataError(
        fmt::format("missing data: {} is neither in {} nor in {}", first, path.string(), folder.string()));
  std::vector<SourceFile> files;
  for (const ManifestFile& file : manifest.files) {
    const std::string name = found_name(folder, file.name);
    if (name.empty()) throw DataError("missing data: no file " + (folder / file.name).string());
    files.push_back({(folder / name).string(), name, read_file((folder / name).string())});
  }
  if (const fs::path names = folder / manifest.names_file;
      !manifest.names_file.empty() && fs::is_regular_file(names))
    check_class_names(manifest, read_file(names.string()), names.string());
  return files;
}

[[noreturn]] void fail_archive(archive* handle, const std::string& path) {
  const char* why = archive_error_string(handle);
  throw DataError(path + ": not a complete archive: " + (why ? why : "unknown fault"));
}

std::string read_member(archive* handle, const std::string& path) {
  std::string bytes;
  for (;;) {
    const void* block = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    const int status = archive_read_data_block(handle, &block, &size, &offset);
    if (status == ARCHIVE_EOF) return bytes;
    if (status != ARCHIVE_OK) fail_archive(handle, path);
    bytes.resize(static_cast<size_t>(offset), '\0');  // holes of a sparse member
    bytes.append(static_cast<const char*>(block), size);
  }
}

}  // namespace

std::map<std::string, std::string> read_members(const std::string& path,
                                                const std::set<std::string>& wanted) {
  const ArchiveHandle handle(archive_read_new(), archive_read_free);
  archive_read_support_filter_gzip(handle.get());
  archive_read_support_filter_xz(handle.get());
  archive_read_support_format_tar(handle.get());
  archive_read_support_format_zip(handle.get());
  if (archive_read_open_filename(handle.get(), path.c_str(), 1 << 20) != ARCHIVE_OK)
    fail_archive(handle.get(), path);
  std::map<std::string, std::string> members;
  for (archive_entry* entry = nullptr;;) {
    const int status = archive_read_next_header(handle.get(), &entry);
    if (status == ARCHIVE_EOF) return members;
    if (status != ARCHIVE_OK) fail_archive(handle.get(), path);
    const char* member = archive_entry_pathname(entry);
    const std::string name = member ? fs::path(member).filename().string() : "";
    if (archive_entry_filetype(entry) != AE_IFREG || !wanted.contains(name)) continue;
    if (!members.emplace(name, read_member(handle.get(), path)).second)
      throw DataError(fmt::format("{}: holds two files {}", path, name));
  }
}

namespace {

std::vector<SourceFile> read_archive(const Manifest& manifest, const std::string& path) {
  std::set<std::string> wanted;
  if (!manifest.names_file.empty()) wanted.insert(manifest.names_file);
  for (const ManifestFile& file : manifest.files) wanted.insert({file.name, without_gz(file.name)});
  std::map<std::string, std::string> members = read_members(path, wanted);
  std::vector<SourceFile> files;
  for (const ManifestFile& file : manifest.files) {
    const std::string name = members.contains(file.name) ? file.name : without_gz(file.name);
    const auto member = members.find(name);
    if (member == members.end())
      throw DataError(fmt::format("missing data: no file {} in {}", file.name, path));
    files.push_back({fmt::format("{}:{}", path, name), name, std::move(member->second)});
  }
  if (const auto names = members.find(manifest.names_file); names != members.end())
    check_class_names(manifest, names->second, fmt::format("{}:{}", path, names->first));
  return files;
}

}  // namespace

std::vector<SourceFile> read_source_files(const Manifest& manifest, const std::string& path) {
  if (fs::is_directory(path)) return read_folder(manifest, path);
  if (!fs::exists(path)) throw DataError("missing data: " + path + " does not exist");
  if (manifest.is_text()) return {{path, manifest.files.front().name, read_file(path)}};
  return read_archive(manifest, path);
}

std::string identify_copy(const Manifest& manifest, const std::vector<SourceFile>& files) {
  std::vector<std::string> hashes;
  for (const SourceFile& file : files) hashes.push_back(sha256_hex(file.stored));
  for (const KnownCopy& copy : manifest.copies) {
    const auto wanted = [&](size_t i) -> const std::string& {
      const bool unpacked = files[i].name != manifest.files[i].name;
      return unpacked ? copy.unpacked_sha256.at(i) : copy.sha256.at(i);
    };
    size_t equal = 0, misfit = files.size();
    for (size_t i = 0; i < files.size(); ++i) {
      if (hashes[i] == wanted(i))
        ++equal;
      else
        misfit = std::min(misfit, i);
    }
    if (equal == files.size()) return copy.pixels;
    if (equal > 0 || manifest.must_be_known)
      throw DataError(fmt::format("{}: SHA-256 {} does not match the {} file ({})", files[misfit].where,
                                  hashes[misfit], copy.pixels, wanted(misfit)));
  }
  return kUnverified;
}

std::string gunzip(const std::string& bytes, const std::string& where) {
  if (bytes.size() < 2 || bytes[0] != '\x1f' || bytes[1] != '\x8b') return bytes;
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) throw DataError(where + ": cannot start to decompress");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
  stream.next_in =
      reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib's old signature; it only reads
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out, block(1 << 20, '\0');
  for (int status = Z_OK; status != Z_STREAM_END;) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    status = inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END)
      throw DataError(fmt::format("{}: truncated or corrupted gzip file ({})", where,
                                  stream.msg ? stream.msg : "it ends early"));
    out.append(block.data(), block.size() - stream.avail_out);
  }
  if (stream.avail_in != 0) throw DataError(where + ": bytes follow the end of the gzip stream");
  return out;
}

}  // namespace basin
