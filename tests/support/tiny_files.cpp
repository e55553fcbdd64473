#include "tests/support/tiny_files.h"

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include "core/error.h"

namespace basin::testing {

Manifest tiny_cifar() {
  Manifest m;
  m.set = "tiny";
  m.folder = "tiny-bin";
  m.files = {{"a.bin", false, 3, FileRole::records},
             {"b.bin", false, 2, FileRole::records},
             {"t.bin", true, 2, FileRole::records}};
  m.channels = 2;
  m.height = 2;
  m.width = 3;
  m.label_bytes = {3};
  m.names_file = "names.txt";
  m.class_names = {"red", "green", "blue"};
  return m;
}

Manifest tiny_cifar_two_labels() {
  Manifest m = tiny_cifar();
  m.label_bytes = {2, 3};
  return m;
}

Manifest tiny_idx() {
  Manifest m = tiny_cifar();
  m.files = {{"train-images.gz", false, 3, FileRole::images},
             {"train-labels.gz", false, 3, FileRole::labels},
             {"t10k-images.gz", true, 2, FileRole::images},
             {"t10k-labels.gz", true, 2, FileRole::labels}};
  m.channels = 1;
  m.names_file.clear();
  return m;
}

std::string tiny_record(int record, bool coarse) {
  std::string bytes;
  if (coarse) bytes += static_cast<char>(record % 2);
  bytes += static_cast<char>(record % 3);
  for (int p = 0; p < 12; ++p) bytes += static_cast<char>(10 * record + p);
  return bytes;
}

std::string tiny_idx_images(int first, int n) {
  std::string bytes = {0, 0, 8, 3, 0, 0, 0, static_cast<char>(n), 0, 0, 0, 2, 0, 0, 0, 3};
  for (int r = first; r < first + n; ++r)
    for (int p = 0; p < 6; ++p) bytes += static_cast<char>(10 * r + p);
  return bytes;
}

std::string tiny_idx_labels(int first, int n) {
  std::string bytes = {0, 0, 8, 1, 0, 0, 0, static_cast<char>(n)};
  for (int r = first; r < first + n; ++r) bytes += static_cast<char>(r % 3);
  return bytes;
}

std::string gzipped(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(bytes.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Files tiny_cifar_files(bool coarse) {
  const auto records = [&](int first, int n) {
    std::string bytes;
    for (int r = first; r < first + n; ++r) bytes += tiny_record(r, coarse);
    return bytes;
  };
  return {{"a.bin", records(0, 3)},
          {"b.bin", records(3, 2)},
          {"t.bin", records(5, 2)},
          {"names.txt", "red\ngreen\nblue\n\n"}};
}

Files tiny_idx_files(bool compressed) {
  Files files = {{"train-images", tiny_idx_images(0, 3)},
                 {"train-labels", tiny_idx_labels(0, 3)},
                 {"t10k-images", tiny_idx_images(3, 2)},
                 {"t10k-labels", tiny_idx_labels(3, 2)}};
  if (!compressed) return files;
  for (auto& [name, bytes] : files) {
    name += ".gz";
    bytes = gzipped(bytes);
  }
  return files;
}

void write_files(const std::string& folder, const Files& files) {
  std::filesystem::create_directories(folder);
  for (const auto& [name, bytes] : files) spill(fmt::format("{}/{}", folder, name), bytes);
}

void write_archive(const std::string& path, const std::string& folder, const Files& files) {
  archive* out = archive_write_new();
  archive_write_add_filter_gzip(out);
  archive_write_set_format_ustar(out);
  archive_write_open_filename(out, path.c_str());
  for (const auto& [name, bytes] : files) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, fmt::format("{}/{}", folder, name).c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(out, entry);
    archive_write_data(out, bytes.data(), bytes.size());
    archive_entry_free(entry);
  }
  archive_write_close(out);
  archive_write_free(out);
}

std::vector<int64_t> values(const at::Tensor& integers) {
  const at::Tensor flat = integers.to(at::kLong).contiguous();
  return {flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel()};
}

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string data_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.what();
  }
  return "(no DataError was thrown)";
}

}  // namespace basin::testing
