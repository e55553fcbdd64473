// defines: spectral_norm(), operator_norm(), product_of() and path_norm(), sizes of a network's layers.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "probes/estimators/network_layers.h"

namespace basin {

/// `residual`: a singular value lies within it of `value`.
struct SpectralNorm {
  double value = 0, residual = 0;
};

/// The largest singular value of a weight as a matrix, outputs x all others: of a convolution [out, in k k].
/// By the eigenvectors of the smaller Gram matrix in float64; with u and v its unit vectors and W'u = value v
/// the residual is |W v - value u|. Cost: m^2 n for an m x n matrix, m <= n.
SpectralNorm spectral_norm(const at::Tensor& weight);

/// The norm of the layer as a map of one example's input, the root of the largest sum_j (layer(x)_j)^2 over sum x^2,
/// without bias. A convolution has its own size of image (Sedghi, Gupta & Long, ICLR 2019, say why the matrix above is
/// another one): by Lanczos on the transposed layer of the layer, to 1e-8. A linear layer has the same as
/// spectral_norm(). Cost: some 20 convolutions of one image there and back.
SpectralNorm operator_norm(const NetworkLayer& layer, uint64_t seed);

/// The product of the norms; its residual is the sum of the relative ones times the product.
SpectralNorm product_of(const std::vector<SpectralNorm>& norms);

/// `value` is NaN where there is a reason.
struct NormOrReason {
  double value = 0;
  std::string reason;
};

/// sqrt(sum over paths of the product of squared weights along it), paths from inputs and biases to logits
/// (Neyshabur, Tomioka & Srebro, COLT 2015; Jiang et al., ICLR 2020, appendix C): the root of the sum of the
/// logits of the network with every weight and bias squared, frozen batch norm folded in before, at an image
/// of ones. Maximum pooling stays one; average pooling stays a mean, whose
/// factor 1/(H W) is not squared, as in robust-generalization-measures. Not for networks that aren't
/// positively homogeneous without their biases, f(1024 x) = 1024 f(x), which is looked at for 8 examples:
/// another activation than ReLU, normalisation by example.
///
/// Cost: three forward passes of up to 8 examples. In float64.
NormOrReason path_norm(Objective& objective, const NetworkLayers& layers);

}  // namespace basin
