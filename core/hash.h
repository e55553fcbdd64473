// defines: SHA-256 (OpenSSL) and CRC-32 (zlib) of bytes and files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace basin {

/// Incremental SHA-256.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(const void* data, size_t size);
  void update(std::string_view text) { update(text.data(), text.size()); }
  /// Returns 64 lower-case hex digits; call only once.
  std::string hex_digest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(const void* data, size_t size);
std::string sha256_hex(std::string_view text);
/// Throws IoError where the file cannot be read.
std::string sha256_of_file(const std::string& path);
uint32_t crc32_of(const void* data, size_t size);

}  // namespace basin
