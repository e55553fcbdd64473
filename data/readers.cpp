#include "data/readers.h"

#include <cstring>

#include "core/error.h"
#include "core/hash.h"
#include "data/text.h"

namespace basin {
namespace {

/// A split being filled record by record.
class SplitBuilder {
 public:
  SplitBuilder(const Manifest& manifest, bool test) : pixels_(manifest.pixels_per_image()) {
    int64_t n = 0;
    for (const ManifestFile& file : manifest.files)
      if (file.test == test && file.role != FileRole::labels) n += file.examples;
    split_.inputs = at::empty({n, manifest.channels, manifest.height, manifest.width}, at::kByte);
    split_.labels = at::empty({n}, at::kLong);
    split_.source_index = at::arange(n, at::kLong);
  }
  uint8_t* next_image() { return split_.inputs.data_ptr<uint8_t>() + pixels_ * images_++; }
  int64_t& next_label() { return split_.labels.data_ptr<int64_t>()[labels_++]; }
  Split finish() { return split_; }

 private:
  Split split_;
  int64_t pixels_, images_ = 0, labels_ = 0;
};

[[noreturn]] void reject_label(const std::string& where, int64_t record, int value, int64_t classes) {
  throw DataError(
      fmt::format("{}: record {} has label {}, not within 0..{}", where, record, value, classes - 1));
}

void append_records(const Manifest& manifest, const ManifestFile& wanted, const SourceFile& file,
                    SplitBuilder& split) {
  const int64_t size = static_cast<int64_t>(file.stored.size()), record = manifest.record_bytes();
  if (size % record != 0)
    throw DataError(
        fmt::format("{}: {} bytes are not whole records of {} bytes (truncated or foreign); expected {}",
                    file.where, size, record, wanted.examples * record));
  if (size != wanted.examples * record)
    throw DataError(fmt::format("{}: {} records, but {} has {}", file.where, size / record, manifest.set,
                                wanted.examples));
  const auto* byte = reinterpret_cast<const uint8_t*>(file.stored.data());
  for (int64_t i = 0; i < wanted.examples; ++i) {
    for (const int64_t values : manifest.label_bytes)
      if (*byte++ >= values) reject_label(file.where, i, byte[-1], values);
    split.next_label() = byte[-1];
    std::memcpy(split.next_image(), byte, static_cast<size_t>(manifest.pixels_per_image()));
    byte += manifest.pixels_per_image();
  }
}

uint32_t big_endian(const std::string& bytes, size_t word) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[4 * word + i]);
  return value;
}

/// Checks the header against the manifest and returns the payload's bytes.
const uint8_t* idx_payload(const Manifest& manifest, const ManifestFile& wanted, const SourceFile& file) {
  const bool images = wanted.role == FileRole::images;
  const std::vector<int64_t> sizes =
      images ? std::vector<int64_t>{wanted.examples, manifest.height, manifest.width}
             : std::vector<int64_t>{wanted.examples};
  const size_t header = 4 * (1 + sizes.size());
  const uint32_t magic = images ? 0x803 : 0x801;
  if (file.stored.size() < header || big_endian(file.stored, 0) != magic)
    throw DataError(fmt::format("{}: not an idx file of {} (its magic number is not {})", file.where,
                                images ? "images" : "labels", magic));
  std::vector<int64_t> found;
  for (size_t i = 0; i < sizes.size(); ++i) found.push_back(big_endian(file.stored, 1 + i));
  if (found != sizes)
    throw DataError(fmt::format("{}: idx sizes {}, but {} has {}", file.where, fmt::join(found, "x"),
                                manifest.set, fmt::join(sizes, "x")));
  int64_t payload = 1;
  for (const int64_t size : sizes) payload *= size;
  if (file.stored.size() != header + static_cast<size_t>(payload))
    throw DataError(fmt::format("{}: {} bytes, but its header announces {} (truncated or foreign)",
                                file.where, file.stored.size(), header + static_cast<size_t>(payload)));
  return reinterpret_cast<const uint8_t*>(file.stored.data()) + header;
}

void append_idx(const Manifest& manifest, const ManifestFile& wanted, const SourceFile& file,
                SplitBuilder& split) {
  const uint8_t* payload = idx_payload(manifest, wanted, file);
  const int64_t classes = static_cast<int64_t>(manifest.class_names.size()),
                pixels = manifest.pixels_per_image();
  for (int64_t i = 0; i < wanted.examples; ++i) {
    if (wanted.role == FileRole::images) {
      std::memcpy(split.next_image(), payload + i * pixels, static_cast<size_t>(pixels));
    } else {
      if (payload[i] >= classes) reject_label(file.where, i, payload[i], classes);
      split.next_label() = payload[i];
    }
  }
}

}  // namespace

Dataset parse_set(const Manifest& manifest, const std::vector<SourceFile>& files,
                  const DataOptions& options) {
  if (manifest.is_text()) {
    Dataset data = text_windows(manifest.set, {files.front().where, files.front().stored}, options);
    data.pixels = identify_copy(manifest, files);
    return data;
  }
  SplitBuilder train(manifest, false), test(manifest, true);
  Sha256 contents;
  for (size_t i = 0; i < files.size(); ++i) {
    const ManifestFile& wanted = manifest.files[i];
    SplitBuilder& split = wanted.test ? test : train;
    if (wanted.role == FileRole::records) {
      append_records(manifest, wanted, files[i], split);
      contents.update(files[i].stored);
    } else {
      const SourceFile plain{files[i].where, files[i].name, gunzip(files[i].stored, files[i].where)};
      append_idx(manifest, wanted, plain, split);
      contents.update(plain.stored);
    }
  }
  Dataset data;
  data.name = manifest.set;
  data.pixels =
      identify_copy(manifest, files);  // after sizes and labels: "truncated" says more than "wrong checksum"
  data.class_names = manifest.class_names;
  data.train = train.finish();
  data.test = test.finish();
  data.sha256 = contents.hex_digest();
  return data;
}

Dataset read_set(const Manifest& manifest, const std::string& path, const DataOptions& options) {
  return parse_set(manifest, read_source_files(manifest, path), options);
}

}  // namespace basin
