// defines: sequence_gradients(), embedding_gradients(): gradients of single examples whose layer was applied at T positions.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "hessian/gradients/example_gradients.h"

namespace basin {

/// g_i = D_i' X_i of a linear layer at T positions, D_i [T, out] and X_i [T, in]: |g_i|^2 is the sum over s, t of (X_i X_i')_st (D_i D_i')_st,
/// or that of g_i itself where it has fewer numbers than that work (as UnfoldedImages for convolutions). d [m, T, out], x [m, T, in].
std::unique_ptr<ExampleGradients> sequence_gradients(const at::Tensor& d, const at::Tensor& x);

/// g_i of an embedding [count, width]: row v is the sum of d_it over the positions with x_it = v, so |g_i|^2 is the sum over s, t with
/// x_is = x_it of d_is . d_it. d [m, T, width], x int64 [m, T].
std::unique_ptr<ExampleGradients> embedding_gradients(const at::Tensor& d, const at::Tensor& x,
                                                      int64_t count);

}  // namespace basin
