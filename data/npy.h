// defines: npy_tensor() and mapped_npy(), arrays as numpy saves them.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

namespace basin {

/// The array of a .npy file whose bytes lie in memory that `keep` keeps (versions 1 to 3 of the format; numpy.lib.format): a view of it
/// where it is in rows and aligned, else a copy. bool, int8 to int64, uint8, float16 to float64, little-endian; DataError that begins
/// with `where` for other types and for bytes that are no such file, or not all of it.
at::Tensor npy_tensor(const std::shared_ptr<const void>& keep, const char* bytes, size_t size,
                      const std::string& where);

/// The array of a file, mapped into memory: pages are read as they are used.
at::Tensor mapped_npy(const std::string& path);

}  // namespace basin
