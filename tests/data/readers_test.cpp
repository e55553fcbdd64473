#include "data/readers.h"

#include <gmock/gmock.h>

#include "core/hash.h"
#include "data/registry.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_files.h"

namespace basin::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Record r of the tiny files has class r mod 3 and pixels 10 r + p.
void expect_tiny(const Split& split, int64_t first, int64_t n, int64_t pixels) {
  ASSERT_EQ(split.size(), n);
  std::vector<int64_t> labels, bytes, source;
  for (int64_t r = first; r < first + n; ++r) {
    labels.push_back(r % 3);
    source.push_back(r - first);
    for (int64_t p = 0; p < pixels; ++p) bytes.push_back(10 * r + p);
  }
  EXPECT_EQ(values(split.labels), labels);
  EXPECT_EQ(values(split.inputs), bytes);
  EXPECT_EQ(values(split.source_index), source);
}

class Cifar : public ::testing::TestWithParam<bool> {  // with a coarse label or without
 protected:
  Manifest manifest_ = GetParam() ? tiny_cifar_two_labels() : tiny_cifar();
  TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Labels, Cifar, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "CoarseAndFine" : "One"; });

TEST_P(Cifar, FolderFolderInsideAndArchiveHoldTheSameSet) {
  write_files(folder_ / "plain", tiny_cifar_files(GetParam()));
  write_files(folder_ / "outer/tiny-bin", tiny_cifar_files(GetParam()));
  write_archive(folder_ / "set.tar.gz", "tiny-bin", tiny_cifar_files(GetParam()));
  std::string all;
  for (const auto& [name, bytes] : tiny_cifar_files(GetParam()))
    if (name != "names.txt") all += bytes;
  for (const char* place : {"plain", "outer", "set.tar.gz"}) {
    SCOPED_TRACE(place);
    const Dataset data = read_set(manifest_, folder_ / place);
    expect_tiny(data.train, 0, 5, 12);
    expect_tiny(data.test, 5, 2, 12);
    EXPECT_EQ(data.train.inputs.sizes(), (std::vector<int64_t>{5, 2, 2, 3}));
    EXPECT_EQ(data.sha256, sha256_hex(all));
    EXPECT_EQ(data.pixels, "unverified");
    EXPECT_EQ(data.class_names, manifest_.class_names);
  }
}

TEST_P(Cifar, TruncatedFileIsRejectedWithItsSizes) {
  Files files = tiny_cifar_files(GetParam());
  files[1].second.pop_back();
  write_files(folder_ / "set", files);
  const int64_t record = GetParam() ? 14 : 13;
  EXPECT_THAT(data_error([&] { read_set(manifest_, folder_ / "set"); }),
              AllOf(HasSubstr(folder_ / "set/b.bin"), HasSubstr(fmt::format("{} bytes", 2 * record - 1)),
                    HasSubstr(fmt::format("records of {} bytes", record)), Not(HasSubstr("\n"))));
}

TEST_P(Cifar, WholeRecordsOfAnotherCountAreRejected) {
  Files files = tiny_cifar_files(GetParam());
  files[2].second += tiny_record(9, GetParam());
  write_files(folder_ / "set", files);
  EXPECT_THAT(data_error([&] { read_set(manifest_, folder_ / "set"); }),
              AllOf(HasSubstr("t.bin: 3 records"), HasSubstr("tiny has 2")));
}

TEST_P(Cifar, LabelOutOfRangeIsRejectedWithItsRecord) {
  for (size_t byte = 0; byte < (GetParam() ? 2u : 1u); ++byte) {
    Files files = tiny_cifar_files(GetParam());
    files[0].second[2 * static_cast<size_t>(manifest_.record_bytes()) + byte] = 3;
    write_files(folder_ / "set", files);
    EXPECT_THAT(data_error([&] { read_set(manifest_, folder_ / "set"); }),
                AllOf(HasSubstr("a.bin: record 2 has label 3"),
                      HasSubstr(fmt::format("0..{}", manifest_.label_bytes[byte] - 1))));
  }
}

TEST(Source, MissingThingsAreNamed) {
  const TemporaryFolder folder;
  const Manifest manifest = tiny_cifar();
  EXPECT_THAT(data_error([&] { read_set(manifest, folder / "nowhere"); }),
              AllOf(HasSubstr("missing data"), HasSubstr(folder / "nowhere")));
  EXPECT_THAT(data_error([&] { read_set(manifest, folder.path()); }),
              AllOf(HasSubstr("missing data: a.bin"), HasSubstr("tiny-bin")));
  Files files = tiny_cifar_files();
  files.erase(files.begin() + 1);
  write_files(folder / "set", files);
  EXPECT_THAT(data_error([&] { read_set(manifest, folder / "set"); }), HasSubstr(folder / "set/b.bin"));
  write_archive(folder / "set.tar.gz", "x", files);
  EXPECT_THAT(data_error([&] { read_set(manifest, folder / "set.tar.gz"); }),
              AllOf(HasSubstr("no file b.bin"), HasSubstr("set.tar.gz")));
}

TEST(Source, ForeignOrTruncatedArchiveIsRejected) {
  const TemporaryFolder folder;
  spill(folder / "text.tar.gz", "this is not an archive, whatever its name says");
  EXPECT_THAT(data_error([&] { read_set(tiny_cifar(), folder / "text.tar.gz"); }),
              AllOf(HasSubstr("text.tar.gz"), HasSubstr("archive"), Not(HasSubstr("\n"))));
  write_archive(folder / "set.tar.gz", "x", tiny_cifar_files());
  const std::string whole = slurp(folder / "set.tar.gz");
  spill(folder / "cut.tar.gz", whole.substr(0, whole.size() / 2));
  EXPECT_THAT(data_error([&] { read_set(tiny_cifar(), folder / "cut.tar.gz"); }), HasSubstr("cut.tar.gz"));
}

TEST(Source, ForeignClassNamesAreRejected) {
  const TemporaryFolder folder;
  Files files = tiny_cifar_files();
  files[3].second = "red\nblue\ngreen\n";
  write_files(folder / "set", files);
  EXPECT_THAT(data_error([&] { read_set(tiny_cifar(), folder / "set"); }), HasSubstr("names.txt"));
}

/// tiny_cifar with two known copies: "official", and one that differs from it in every file.
Manifest known_tiny(Files& other) {
  Manifest manifest = tiny_cifar();
  other = tiny_cifar_files();
  KnownCopy official{"official", {}, {}}, copy{"jpeg copy", {}, {}};
  for (size_t i = 0; i < 3; ++i) {
    official.sha256.push_back(sha256_hex(other[i].second));
    other[i].second.back() ^= 1;
    copy.sha256.push_back(sha256_hex(other[i].second));
  }
  manifest.copies = {official, copy};
  return manifest;
}

TEST(KnownCopies, AreToldApartAndMixturesRejected) {
  const TemporaryFolder folder;
  Files other;
  const Manifest manifest = known_tiny(other);
  write_files(folder / "set", tiny_cifar_files());
  EXPECT_EQ(read_set(manifest, folder / "set").pixels, "official");
  write_files(folder / "set", other);
  EXPECT_EQ(read_set(manifest, folder / "set").pixels, "jpeg copy");

  for (const Files& base : {tiny_cifar_files(), other}) {
    Files damaged = base;
    damaged[1].second[5] ^= 0x40;
    write_files(folder / "set", damaged);
    EXPECT_THAT(data_error([&] { read_set(manifest, folder / "set"); }),
                AllOf(HasSubstr("set/b.bin"), HasSubstr("SHA-256")));
  }

  Files unknown = other;
  for (size_t i = 0; i < 3; ++i) unknown[i].second[5] ^= 0x40;
  write_files(folder / "set", unknown);
  EXPECT_EQ(read_set(manifest, folder / "set").pixels, "unverified");
  Manifest strict = manifest;
  strict.must_be_known = true;
  EXPECT_THAT(data_error([&] { read_set(strict, folder / "set"); }), HasSubstr("set/a.bin"));
}

class Idx : public ::testing::TestWithParam<bool> {  // compressed or not
 protected:
  void reject(size_t file, const std::function<void(std::string&)>& damage, const std::string& message) {
    Files files = tiny_idx_files(false);
    damage(files[file].second);
    if (GetParam())
      for (auto& [name, bytes] : files) {
        name += ".gz";
        bytes = gzipped(bytes);
      }
    write_files(folder_ / "set", files);
    EXPECT_THAT(data_error([&] { read_set(tiny_idx(), folder_ / "set"); }),
                AllOf(HasSubstr(files[file].first), HasSubstr(message), Not(HasSubstr("\n"))));
  }
  TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Files, Idx, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Gzip" : "Plain"; });

TEST_P(Idx, ReadsImagesAndLabels) {
  write_files(folder_ / "set", tiny_idx_files(GetParam()));
  const Dataset data = read_set(tiny_idx(), folder_ / "set");
  expect_tiny(data.train, 0, 3, 6);
  expect_tiny(data.test, 3, 2, 6);
  EXPECT_EQ(data.train.inputs.sizes(), (std::vector<int64_t>{3, 1, 2, 3}));
  EXPECT_EQ(data.sha256, sha256_hex(tiny_idx_images(0, 3) + tiny_idx_labels(0, 3) + tiny_idx_images(3, 2) +
                                    tiny_idx_labels(3, 2)));  // of what the files say, packed or not
}

TEST_P(Idx, RejectsWhatItsHeaderBelies) {
  reject(
      0, [](std::string& b) { b[3] = 1; }, "not an idx file of images");
  reject(
      1, [](std::string& b) { b[3] = 3; }, "not an idx file of labels");
  reject(
      0, [](std::string& b) { b[7] = 4; }, "idx sizes 4x2x3, but tiny has 3x2x3");
  reject(
      0, [](std::string& b) { b[15] = 2; }, "idx sizes 3x2x2");
  reject(
      0, [](std::string& b) { b.pop_back(); }, "33 bytes, but its header announces 34");
  reject(
      3, [](std::string& b) { b += '\0'; }, "11 bytes, but its header announces 10");
  reject(
      2, [](std::string& b) { b.resize(9); }, "not an idx file");
  reject(
      3, [](std::string& b) { b.back() = 3; }, "record 1 has label 3");
}

/// tiny_idx with one known copy, packed and unpacked.
Manifest known_idx() {
  Manifest manifest = tiny_idx();
  KnownCopy official{"official", {}, {}};
  for (const auto& [name, bytes] : tiny_idx_files(true)) official.sha256.push_back(sha256_hex(bytes));
  for (const auto& [name, bytes] : tiny_idx_files(false))
    official.unpacked_sha256.push_back(sha256_hex(bytes));
  manifest.copies = {official};
  return manifest;
}

TEST_P(Idx, IsKnownPackedOrNotAndAFlippedPixelIsDamage) {
  Files files = tiny_idx_files(false);
  write_files(folder_ / "good", tiny_idx_files(GetParam()));
  EXPECT_EQ(read_set(known_idx(), folder_ / "good").pixels, "official");
  files[2].second.back() ^= 1;
  if (GetParam())
    for (auto& [name, bytes] : files) {
      name += ".gz";
      bytes = gzipped(bytes);
    }
  write_files(folder_ / "flipped", files);
  EXPECT_THAT(data_error([&] { read_set(known_idx(), folder_ / "flipped"); }),
              AllOf(HasSubstr(files[2].first), HasSubstr("SHA-256")));
}

TEST(KnownIdx, OneUnpackedFileAmongPackedOnesIsCheckedToo) {
  const TemporaryFolder folder;
  Files files = tiny_idx_files(true);
  files[0] = tiny_idx_files(false)[0];
  write_files(folder / "mixed", files);
  EXPECT_EQ(read_set(known_idx(), folder / "mixed").pixels, "official");
  files[0].second.back() ^= 1;
  write_files(folder / "mixed", files);
  EXPECT_THAT(data_error([&] { read_set(known_idx(), folder / "mixed"); }),
              AllOf(HasSubstr("train-images: SHA-256"), HasSubstr("official")));
}

TEST(Gunzip, ReportsDamage) {
  const std::string packed = gzipped(tiny_idx_images(0, 3));
  EXPECT_EQ(gunzip(packed, "x"), tiny_idx_images(0, 3));
  EXPECT_THAT(data_error([&] { gunzip(packed.substr(0, packed.size() - 9), "x.gz"); }),
              HasSubstr("x.gz: truncated"));
  std::string wrong_crc = packed;
  wrong_crc[packed.size() - 6] ^= 1;
  EXPECT_THAT(data_error([&] { gunzip(wrong_crc, "x.gz"); }), HasSubstr("x.gz"));
  EXPECT_THAT(data_error([&] { gunzip(packed + "more", "x.gz"); }), HasSubstr("follow the end"));
}

TEST(Manifests, AreWhole) {
  for (const DatasetEntry& entry : dataset_registry()) {
    if (!entry.manifest) continue;
    SCOPED_TRACE(entry.name);
    const Manifest& m = *entry.manifest;
    EXPECT_EQ(m.set, entry.name);
    // What the classes of a text are follows from the text.
    EXPECT_EQ(static_cast<int64_t>(m.class_names.size()), m.is_text() ? 0 : m.label_bytes.back());
    EXPECT_EQ(m.archive_url.empty(), m.archive_sha256.empty());
    EXPECT_EQ(std::set<std::string>(m.class_names.begin(), m.class_names.end()).size(), m.class_names.size());
    for (const KnownCopy& copy : m.copies) {
      EXPECT_EQ(copy.sha256.size(), m.files.size());
      const bool packed = m.files.front().name.ends_with(".gz");
      EXPECT_EQ(copy.unpacked_sha256.size(), packed ? m.files.size() : 0);
      std::vector<std::string> hashes = copy.sha256;
      hashes.insert(hashes.end(), copy.unpacked_sha256.begin(), copy.unpacked_sha256.end());
      for (const std::string& hash : hashes)
        EXPECT_EQ(hash.find_first_not_of("0123456789abcdef") == std::string::npos ? hash.size() : 0, 64u)
            << hash;
    }
  }
  const std::vector<std::string>& fine = manifest_of("cifar100").class_names;
  EXPECT_TRUE(std::is_sorted(fine.begin(), fine.end()));  // the official list is alphabetical
  EXPECT_EQ(fine.size(), 100u);
  EXPECT_EQ(manifest_of("cifar100").record_bytes(), 3074);
  EXPECT_EQ(manifest_of("cifar10").record_bytes(), 3073);
}

}  // namespace
}  // namespace basin::testing
