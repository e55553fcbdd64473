// defines: SharedVectors, the memory that this process and the one that answers have in common.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace basin {

/// Six arrays one after another, each from a multiple of 64 bytes on:
///   weights    [size]  dtype    at which is asked: written here, read there
///   direction  [size]  dtype    v of a product: written here, read there
///   result     [size]  dtype    a gradient or a product: written there, read here
///   index      [n]     int64    the examples of a batch: written here, read there
///   share      [n]     float64  their weights: written here, read there
///   losses     [n]     float64  losses by example: written there, read here
/// Only one process works at a time, since a question waits for its answer: nothing is locked.
///
/// The memory is a memfd without a name, sealed against shrinking, so that no write of the other process can take pages
/// from under this one. PartnerError where it isn't sealed or is too small.
class SharedVectors {
 public:
  /// The descriptor may be closed afterwards.
  SharedVectors(int descriptor, int64_t size, at::ScalarType dtype, int64_t examples);

  at::Tensor weights, direction, result, index, share, losses;
};

}  // namespace basin
