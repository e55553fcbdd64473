#include "core/seed.h"

#include <ATen/CPUGeneratorImpl.h>

#include "core/hash.h"

namespace basin {

uint64_t derive_seed(uint64_t master, std::string_view stream, uint64_t index) {
  const std::string digest = sha256_hex(fmt::format("basin/{}/{}/{}", master, stream, index));
  return std::stoull(digest.substr(0, 16), nullptr, 16);
}

at::Generator make_generator(uint64_t seed) { return at::detail::createCPUGenerator(seed); }

}  // namespace basin
