#include "data/npy.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <regex>

#include "core/error.h"

namespace basin {
namespace {

constexpr size_t kLongestHeader = 10'000;  // as numpy has it
constexpr std::string_view kMagic("\x93NUMPY", 6);

struct Header {
  at::ScalarType type;
  std::vector<int64_t> shape;
  bool by_columns = false;
};

at::ScalarType type_named(const std::string& descr, const std::string& where) {
  static const std::map<std::string, at::ScalarType> known = {
      {"|b1", at::kBool}, {"|i1", at::kChar}, {"|u1", at::kByte},  {"<i2", at::kShort}, {"<i4", at::kInt},
      {"<i8", at::kLong}, {"<f2", at::kHalf}, {"<f4", at::kFloat}, {"<f8", at::kDouble}};
  const auto found = known.find(descr);
  if (found == known.end())
    throw DataError(fmt::format(
        "{}: numbers of type \"{}\"; known: bool, int8 to int64, uint8, float16 to float64, little-endian",
        where, descr));
  return found->second;
}

std::string field(const std::string& text, const std::string& key, const std::string& pattern,
                  const std::string& where) {
  std::smatch match;
  if (!std::regex_search(text, match, std::regex("'" + key + "': *" + pattern)))
    throw DataError(where + ": its header has no " + key);
  return match[1];
}

/// "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }"
Header parsed(const std::string& text, const std::string& where) {
  Header header{type_named(field(text, "descr", "'([^']*)'", where), where), {}, false};
  header.by_columns = field(text, "fortran_order", "(True|False)", where) == "True";
  const std::string shape = field(text, "shape", "\\(([0-9, ]*)\\)", where);
  const std::regex number("[0-9]+");
  for (std::sregex_iterator one(shape.begin(), shape.end(), number), end; one != end; ++one) {
    if (one->length() > 15) throw DataError(where + ": its header has an absurd shape");
    header.shape.push_back(std::stoll(one->str()));
  }
  return header;
}

/// Bytes of the numbers; DataError where the shape asks for more than `available`.
size_t bytes_of(const Header& header, size_t available, const std::string& where) {
  if (std::find(header.shape.begin(), header.shape.end(), 0) != header.shape.end())
    throw DataError(where + ": an array without numbers");
  size_t bytes = c10::elementSize(header.type);
  for (const int64_t extent : header.shape) {
    const auto n = static_cast<size_t>(extent);
    if (bytes > available / n)
      throw DataError(fmt::format("{}: truncated: [{}] is more than its {} bytes of numbers", where,
                                  fmt::join(header.shape, ", "), available));
    bytes *= n;
  }
  return bytes;
}

}  // namespace

at::Tensor npy_tensor(const std::shared_ptr<const void>& keep, const char* bytes, size_t size,
                      const std::string& where) {
  if (size < 12 || std::string_view(bytes, 6) != kMagic) throw DataError(where + ": not a .npy file");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  const bool wide = byte(6) > 1;  // the header's length has four bytes from version 2 on
  const size_t start = wide ? 12 : 10,
               length = byte(8) + (byte(9) << 8) + (wide ? (byte(10) << 16) + (byte(11) << 24) : 0);
  if (length > kLongestHeader) throw DataError(where + ": its header is absurdly long");
  if (length > size - start) throw DataError(where + ": truncated in its header");
  Header header = parsed(std::string(bytes + start, length), where);
  const char* data = bytes + start + length;
  const size_t wanted = bytes_of(header, size - start - length, where);
  std::vector<int64_t> sizes = header.shape;
  if (header.by_columns) std::reverse(sizes.begin(), sizes.end());
  at::Tensor array;
  if (reinterpret_cast<uintptr_t>(data) % alignof(std::max_align_t) == 0) {
    array = at::from_blob(
        const_cast<char*>(data), sizes, [keep](void*) {}, at::TensorOptions(header.type));
  } else {
    array = at::empty(sizes, at::TensorOptions(header.type));
    std::memcpy(array.mutable_data_ptr(), data, wanted);
  }
  if (!header.by_columns) return array;
  std::vector<int64_t> axes(sizes.size());
  std::iota(axes.rbegin(), axes.rend(), 0);
  return array.permute(axes).contiguous();
}

at::Tensor mapped_npy(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw DataError(fmt::format("{}: {}", path, std::strerror(errno)));
  struct stat status {};
  const bool known = ::fstat(file, &status) == 0 && status.st_size > 0;
  const auto size = static_cast<size_t>(status.st_size);
  void* mapped = known ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  ::close(file);
  if (!known) throw DataError(path + ": not a .npy file");
  if (mapped == MAP_FAILED)
    throw DataError(fmt::format("{}: can't be mapped: {}", path, std::strerror(errno)));
  const std::shared_ptr<const void> keep(mapped,
                                         [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  return npy_tensor(keep, static_cast<const char*>(mapped), size, path);
}

}  // namespace basin
