#include "landscape/box.h"

#include <ATen/ATen.h>

namespace basin {

at::Tensor keskar_box(const at::Tensor& coordinates, double eps) { return (coordinates.abs() + 1).mul_(eps); }

at::Tensor relative_box(const at::Tensor& x, double eps) { return x.abs().mul_(eps); }

}  // namespace basin
