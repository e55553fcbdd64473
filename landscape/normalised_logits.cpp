#include "landscape/normalised_logits.h"

#include <ATen/ATen.h>

namespace basin {

at::Tensor normalised_logits(const at::Tensor& logits) {
  const at::Tensor centred = logits - logits.mean(-1, /*keepdim=*/true);
  return centred / at::linalg_vector_norm(centred, 2, {-1}, /*keepdim=*/true).clamp_min(1e-10);
}

}  // namespace basin
