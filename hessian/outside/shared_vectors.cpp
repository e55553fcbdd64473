#include "hessian/outside/shared_vectors.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "hessian/outside/line_channel.h"

namespace basin {
namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::shared_ptr<char> mapped(int descriptor, int64_t bytes) {
  struct stat about {};
  if (::fstat(descriptor, &about) != 0)
    throw PartnerError(fmt::format("no shared memory: {}", std::strerror(errno)));
  if (about.st_size < bytes)
    throw PartnerError(fmt::format("the shared memory has {} bytes; {} are needed", about.st_size, bytes));
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    throw PartnerError("the shared memory is no memfd that is sealed against shrinking");
  void* const start =
      ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (start == MAP_FAILED)
    throw PartnerError(fmt::format("the shared memory can't be mapped: {}", std::strerror(errno)));
  return {static_cast<char*>(start), [bytes](char* memory) { ::munmap(memory, static_cast<size_t>(bytes)); }};
}

}  // namespace

SharedVectors::SharedVectors(int descriptor, int64_t size, at::ScalarType dtype, int64_t examples) {
  struct Array {
    at::Tensor& tensor;
    int64_t count;
    at::ScalarType type;
  };
  const Array arrays[] = {{weights, size, dtype},         {direction, size, dtype},
                          {result, size, dtype},          {index, examples, at::kLong},
                          {share, examples, at::kDouble}, {losses, examples, at::kDouble}};
  const auto bytes_of = [](const Array& array) {
    return aligned(array.count * static_cast<int64_t>(c10::elementSize(array.type)));
  };
  int64_t bytes = 0;
  for (const Array& array : arrays) bytes += bytes_of(array);
  const std::shared_ptr<char> memory = mapped(descriptor, bytes);
  int64_t offset = 0;
  for (const Array& array : arrays) {
    array.tensor = at::from_blob(
        memory.get() + offset, {array.count}, [memory](void*) {}, array.type);
    offset += bytes_of(array);
  }
}

}  // namespace basin
