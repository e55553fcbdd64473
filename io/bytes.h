// defines: ByteWriter and ByteReader, little-endian values in a string of bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace basin {

static_assert(std::endian::native == std::endian::little,
              "journals are written as the machine lays numbers out");

class ByteWriter {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void text(std::string_view value) {
    number(static_cast<uint32_t>(value.size()));
    bytes_.append(value);
  }
  template <class T>
  void array(const std::vector<T>& values) {
    static_assert(std::is_arithmetic_v<T>);
    number(static_cast<uint64_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Throws std::out_of_range where the bytes end too early; whoever knows the file's name turns it into an IoError.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  std::string text() {
    const uint32_t size = number<uint32_t>();
    return std::string(take(size), size);
  }
  template <class T>
  std::vector<T> array() {
    const uint64_t count = number<uint64_t>();
    if (count > bytes_.size() / sizeof(T)) throw std::out_of_range("a list longer than its frame");
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), take(count * sizeof(T)), count * sizeof(T));
    return values;
  }
  bool at_end() const { return position_ == bytes_.size(); }
  size_t left() const { return bytes_.size() - position_; }

 private:
  const char* take(size_t size) {
    if (size > left()) throw std::out_of_range("it ends too early");
    const char* start = bytes_.data() + position_;
    position_ += size;
    return start;
  }
  std::string_view bytes_;
  size_t position_ = 0;
};

}  // namespace basin
