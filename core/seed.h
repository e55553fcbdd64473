// defines: named seed streams derived from one master seed.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <string_view>

namespace basin {

/// The first 8 bytes of SHA-256("basin/<master>/<stream>/<index>"), so streams are independent and the same on every platform.
/// A stream is named by what it draws, as "init" or "data-order"; no two uses share a name.
uint64_t derive_seed(uint64_t master, std::string_view stream, uint64_t index = 0);

/// A CPU generator of its own, seeded; nothing in Basin draws from the global one.
at::Generator make_generator(uint64_t seed);

}  // namespace basin
