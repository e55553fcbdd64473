// defines: the boxes in which sharpness is measured.
#pragma once

#include <ATen/core/Tensor.h>

namespace basin {

/// Half widths of Keskar's box, eps (|c_i| + 1), where c = A^+ x, or x itself in the full space
/// (Keskar et al., ICLR 2017, eq. 3 and 4). Nearly the same for every network: with |x_i| << 1 it is eps.
at::Tensor keskar_box(const at::Tensor& coordinates, double eps);

/// eps |x_i|: follows the scale of each parameter; a zero parameter does not move.
at::Tensor relative_box(const at::Tensor& x, double eps);

}  // namespace basin
