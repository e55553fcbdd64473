// defines: per-example losses.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace basin {

/// The loss of one example, from the network's outputs f and its label y:
///   cross_entropy        -log softmax(f)_y; f [classes], y one class
///   token_cross_entropy  -1/T sum_t log softmax(f_t)_{y_t}; f [T, classes], y a class for each of T tokens
///   mse                  1/2 sum_c (f_c - y_c)^2 (the edge-of-stability papers' square loss); f [k], y k numbers, or one class,
///                        which stands for its indicator
enum class LossKind { cross_entropy, token_cross_entropy, mse };

const char* to_string(LossKind kind);
LossKind loss_kind(const std::string& name);
/// In the order of lists.
const std::vector<std::string>& loss_names();
/// "nat" or "1".
const char* units_of(LossKind kind);

/// What is to be predicted of each example: one class, int64 [n]; a class for each of T tokens, int64 [n, T]; numbers,
/// floating-point [n, k].
enum class LabelKind { classes, tokens, numbers };
LabelKind label_kind(const at::Tensor& labels);
/// ConfigError that names both where a loss can't be taken of the labels of `data_set`.
void check_loss(LossKind kind, const at::Tensor& labels, const std::string& data_set);

/// Outputs [n, ...] and labels [n, ...] as above -> losses [n], differentiable twice.
at::Tensor example_losses(LossKind kind, const at::Tensor& outputs, const at::Tensor& labels);

/// float64 [n]: 1 or 0, whether the largest output is that of the label; the share of tokens of which this holds; NaN for numbers.
at::Tensor example_hits(const at::Tensor& outputs, const at::Tensor& labels);

/// Cross entropy against (1 - s) [c = y] + s / classes, s = smoothing in [0, 1): torch's convention, after
/// Szegedy et al. 2016, section 7 (arXiv 1512.00567). What is trained on where labels are smoothed; never
/// what is evaluated or probed.
at::Tensor smoothed_losses(const at::Tensor& outputs, const at::Tensor& labels, double smoothing);

}  // namespace basin
