// defines: the loops over memory of 2x2 max-pooling.
#pragma once

#include <cstdint>

namespace basin {

/// The shape of the larger images, channels last in memory: x[image][row][column][channel]. Height and width are
/// even; the smaller images have half of each.
struct HalvingShape {
  int64_t images, height, width, channels;
};

/// Where in its square a value came from: 0, 1 in the upper row, 2, 3 in the lower; kNowhere: from none.
using Place = int32_t;
inline constexpr Place kNowhere = 4;

/// y = the largest of each square, the first of equal ones, NaN where one is. rectify: y = max(0, that), from
/// nowhere at or below 0.
template <class T>
void halve(const HalvingShape& shape, bool rectify, const T* x, T* y, Place* places);
/// x = y at its place, else 0: the transpose of select().
template <class T>
void spread(const HalvingShape& shape, const T* y, const Place* places, T* x);
/// y = x at its place, 0 from nowhere.
template <class T>
void select(const HalvingShape& shape, const T* x, const Place* places, T* y);

}  // namespace basin
