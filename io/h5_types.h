// defines: what h5.cpp and h5_attributes.cpp share over the C API: checked identifiers, types, shapes. Not
// for other rooms.
#pragma once

#include <c10/core/ScalarType.h>
#include <hdf5.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "io/h5_handle.h"

namespace basin::h5 {

/// HDF5's innermost message, and clears the stack.
std::string hdf5_message();

/// Whether an error number says that the system didn't let us read: nothing is known about the file.
bool is_of_the_system(int fault);

/// IoError where errno, 0 before the call that failed, says that the system was at fault; DamagedError otherwise.
[[noreturn]] void fail_reading(const std::string& message);

/// For identifiers that can only fail when memory is exhausted: property lists, types, dataspaces.
Handle own(hid_t id);
void require(herr_t result);

Handle text_type();
/// h5py's bool: an enumeration of int8.
Handle bool_type();
/// The type in files (little-endian) and, our machines being little-endian too, in memory.
Handle number_type(at::ScalarType type);
/// Undefined for types that we don't write.
at::ScalarType scalar_type(hid_t type);

Handle dataspace(const std::vector<int64_t>& shape);
std::vector<int64_t> extent(hid_t space);
int64_t product(const std::vector<int64_t>& shape);

std::vector<const char*> c_strings(const std::vector<std::string>& texts);

/// Reads texts, variable- or fixed-length, through `read(memory type, buffer)`.
template <class Read>
std::vector<std::string> read_texts_with(hid_t file_type, hid_t space, Read read) {
  const size_t count = static_cast<size_t>(std::max<hssize_t>(0, H5Sget_simple_extent_npoints(space)));
  std::vector<std::string> texts(count);
  if (count == 0) return texts;
  if (H5Tis_variable_str(file_type) > 0) {
    Handle memory = text_type();
    require(H5Tset_cset(memory.get(), H5Tget_cset(file_type)));
    std::vector<char*> pointers(count, nullptr);
    read(memory.get(), static_cast<void*>(pointers.data()));
    for (size_t i = 0; i < count; ++i) texts[i] = pointers[i] ? pointers[i] : "";
    H5Dvlen_reclaim(memory.get(), space, H5P_DEFAULT, pointers.data());
    return texts;
  }
  const size_t size = H5Tget_size(file_type);
  std::vector<char> buffer(count * size);
  read(file_type, static_cast<void*>(buffer.data()));
  for (size_t i = 0; i < count; ++i)
    texts[i] = std::string(&buffer[i * size], strnlen(&buffer[i * size], size));
  return texts;
}

}  // namespace basin::h5
