#include "io/seal.h"

#include <array>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/hash.h"
#include "io/damaged.h"

namespace basin {
namespace {

constexpr std::string_view kMagic(
    "\x89"
    "BSEAL\r\n");
constexpr uint64_t kVersion = 1;
constexpr size_t kVersionAt = 8, kLengthAt = 16, kDigestAt = 24, kUpdateAt = 56, kKindAt = 64, kLabelAt = 128,
                 kLabelEnd = 384, kCrcAt = 508;
static_assert(kMagic.size() == kVersionAt);

using Start = std::array<char, kSealBytes + kHdf5Signature.size()>;

template <class T>
void put(std::string& block, size_t at, T value) {
  std::memcpy(block.data() + at, &value, sizeof(T));
}

template <class T>
T get(const Start& start, size_t at) {
  T value;
  std::memcpy(&value, start.data() + at, sizeof(T));
  return value;
}

void put_text(std::string& block, size_t begin, size_t end, const std::string& text) {
  if (text.size() < end - begin) text.copy(block.data() + begin, text.size());
}

std::string get_text(const Start& start, size_t begin, size_t end) {
  return {start.data() + begin, strnlen(start.data() + begin, end - begin)};
}

bool has(const Start& start, size_t at, std::string_view what) {
  return std::string_view(start.data() + at, what.size()) == what;
}

uint64_t size_of(const std::string& path) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw IoError(fmt::format("{}: {}", path, error.message()));
  return size;
}

std::ifstream opened(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw IoError(fmt::format("{}: {}", path, std::strerror(errno)));
  return in;
}

/// The block and what says that HDF5's part begins; zeros where the file is shorter.
Start start_of(const std::string& path) {
  Start start{};
  opened(path).read(start.data(), start.size());
  return start;
}

/// Whether there is a block; what is none of HDF5's or ours is refused.
bool has_block(const std::string& path, const Start& start, uint64_t size) {
  if (has(start, 0, kMagic)) return true;
  if (has(start, 0, kHdf5Signature)) return false;
  if (has(start, kSealBytes, kHdf5Signature))
    throw DamagedError(
        fmt::format("{}: damaged or not a Basin file: no seal in its first {} bytes", path, kSealBytes));
  throw DamagedError(fmt::format("{}: truncated, damaged or not an HDF5 file ({} bytes)", path, size));
}

[[noreturn]] void refuse_content(const std::string& path) {
  throw DamagedError(fmt::format(
      "{0}: damaged or edited since it was written (if it was edited on purpose, run `basin seal {0}`)",
      path));
}

void check_block(const std::string& path, const Start& start, uint64_t size) {
  if (size < kSealBytes) throw DamagedError(fmt::format("{}: truncated: {} bytes", path, size));
  if (get<uint32_t>(start, kCrcAt) != crc32_of(start.data(), kCrcAt))
    throw DamagedError(path + ": damaged: its seal's checksum doesn't match");
  if (get<uint64_t>(start, kVersionAt) != kVersion)
    throw IoError(fmt::format("{}: its seal has version {}; this program reads {}", path,
                              get<uint64_t>(start, kVersionAt), kVersion));
  const uint64_t sealed = kSealBytes + get<uint64_t>(start, kLengthAt);
  if (size < sealed) throw DamagedError(fmt::format("{}: truncated: {} bytes of {}", path, size, sealed));
  if (size > sealed) refuse_content(path);
}

std::string hex_of(const Start& start) {
  return fmt::format("{:02x}",
                     fmt::join(reinterpret_cast<const unsigned char*>(start.data()) + kDigestAt,
                               reinterpret_cast<const unsigned char*>(start.data()) + kUpdateAt, ""));
}

std::string digest_of_content(const std::string& path) {
  std::ifstream in = opened(path);
  in.seekg(kSealBytes);
  Sha256 hash;
  std::vector<char> buffer(1 << 16);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    hash.update(buffer.data(), static_cast<size_t>(in.gcount()));
  }
  if (in.bad()) throw IoError(fmt::format("{}: {}", path, std::strerror(errno)));
  return hash.hex_digest();
}

std::string bytes_from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

}  // namespace

std::string seal_block(const Seal& seal, std::string_view content) {
  std::string block(kSealBytes, '\0');
  kMagic.copy(block.data(), kMagic.size());
  put(block, kVersionAt, kVersion);
  put(block, kLengthAt, static_cast<uint64_t>(content.size()));
  bytes_from_hex(sha256_hex(content)).copy(block.data() + kDigestAt, kUpdateAt - kDigestAt);
  put(block, kUpdateAt, seal.update);
  put_text(block, kKindAt, kLabelAt, seal.kind);
  put_text(block, kLabelAt, kLabelEnd, seal.label);
  put(block, kCrcAt, crc32_of(block.data(), kCrcAt));
  return block;
}

std::optional<Seal> read_seal(const std::string& path) {
  const uint64_t size = size_of(path);
  const Start start = start_of(path);
  if (!has_block(path, start, size)) return std::nullopt;
  check_block(path, start, size);
  return Seal{get_text(start, kKindAt, kLabelAt), get_text(start, kLabelAt, kLabelEnd),
              get<int64_t>(start, kUpdateAt)};
}

std::optional<Seal> check_seal(const std::string& path) {
  const std::optional<Seal> seal = read_seal(path);
  if (seal && digest_of_content(path) != hex_of(start_of(path))) refuse_content(path);
  return seal;
}

}  // namespace basin
