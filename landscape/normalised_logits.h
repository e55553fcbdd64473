// defines: normalised_logits(), logits without their mean and scale.
#pragma once

#include <ATen/core/Tensor.h>

namespace basin {

/// f <- (f - mean f) / max(|f - mean f|_2, 1e-10) for each example, the mean over classes (Andriushchenko et
/// al., ICML 2023): a loss on top no longer falls when all logits grow. logits [n, ..., classes].
at::Tensor normalised_logits(const at::Tensor& logits);

}  // namespace basin
