// defines: ExampleGradients, the gradients of one parameter tensor by single examples, as factors.
#pragma once

#include <ATen/core/Tensor.h>

namespace basin {

/// g_i, the gradient of example i's loss by one parameter tensor, of m examples. What is asked of it is found
/// from factors of less memory than the m gradients:
///   a bias, a normalisation's scale    g_i itself, which is small;
///   a linear layer                     g_i = d_i x_i', so |g_i|^2 = |d_i|^2 |x_i|^2; at T positions, and an embedding:
///                                      hessian/gradients/sequence_gradients.h;
///   a convolution                      g_i = U_i' D_i: D_i the gradients by the outputs at P positions
///                                      [P, O], U_i the patches of the inputs [P, K], K = C k k. Formed one
///                                      example's after the other, or, where few positions make that less
///                                      work, |g_i|^2 = sum over p, q of (U_i U_i')_pq (D_i D_i')_pq.
/// Linear layers: Goodfellow 2015, arXiv 1510.01799; convolutions: Rochette et al. 2019, arXiv 1912.06015.
/// Cost: about that of the gradient by the weights that it replaces. Memory: besides the factors a piece of
/// patches and gradients, 2^18 numbers or those of one example.
class ExampleGradients {
 public:
  struct Moments {
    at::Tensor squared_norms;   // [m]: |g_i|^2
    at::Tensor sum;             // shaped as the parameter: sum_i g_i
    at::Tensor sum_of_squares;  // likewise, of squares; undefined where not asked for
  };
  virtual ~ExampleGradients() = default;
  virtual Moments moments(bool squares) const = 0;
  /// [m]: sum_j a_j g_ij + b_j g_ij^2, with a and b shaped as the parameter; without b the first alone.
  virtual at::Tensor products(const at::Tensor& a, const at::Tensor& b) const = 0;
  /// The gradients themselves, [m, ...]: m times the parameter's memory.
  virtual at::Tensor formed() const = 0;
};

}  // namespace basin
