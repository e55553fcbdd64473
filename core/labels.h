// defines: LabelKind, what is to be predicted of each example.
#pragma once

#include <ATen/core/Tensor.h>

namespace basin {

/// One class, int64 [n]; a class for each of T tokens, int64 [n, T]; numbers, floating-point [n, k].
enum class LabelKind { classes, tokens, numbers };

inline LabelKind label_kind(const at::Tensor& labels) {
  if (labels.is_floating_point()) return LabelKind::numbers;
  return labels.dim() > 1 ? LabelKind::tokens : LabelKind::classes;
}

}  // namespace basin
