// defines: the layers that models are built from: Conv2d, Linear, Norm, Dropout, activations and pooling.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/max_pool.h"
#include "models/model.h"

namespace basin {

enum class Initializer {
  uniform,    // weight and bias U(-1/sqrt(fan_in), 1/sqrt(fan_in)): PyTorch's default for convolutions and
              // linear layers
  he_normal,  // weight N(0, 2/fan_in) (He et al. 2015), bias 0
  normal,  // weight N(0, 0.02^2), bias 0 (Radford et al. 2018, "Improving Language Understanding", section 4.1)
};

/// What a layer needs while its model is being built. Weights are drawn in float32 whatever the model's type
/// will be, so a float64 model starts at the same point as its float32 twin.
struct Builder {
  Model& model;
  at::Generator& generator;
  Initializer initializer = Initializer::uniform;
};

/// The name of an activation; ConfigError for an unknown one.
enum class Activation { relu, tanh, softplus, gelu };
const std::vector<std::string>& activation_names();
Activation activation_named(const std::string& name);

/// Applies the activation, in place where its backward pass allows (relu, tanh): `x` must be the fresh output
/// of an operation whose own backward pass doesn't need it (convolution, linear, normalisation, pooling,
/// addition).
at::Tensor activate(Activation activation, at::Tensor x);

class Conv2d {
 public:
  struct Shape {
    int64_t in = 0, out = 0, kernel = 1, stride = 1, padding = 0;
    bool bias = true;
    double weight_scale = 1;  // factor on the initial weights
    bool dirac = false;       // the first outputs start as the inputs, each with its own; the others as ever
  };
  Conv2d(const Builder& builder, const std::string& name, const Shape& shape);
  at::Tensor operator()(const at::Tensor& x) const;
  /// scale y + shift by channel, for the price of y.
  at::Tensor scaled(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift) const;
  /// rectified_max_pool(y).
  at::Tensor rectified_and_pooled(const at::Tensor& x) const;
  const at::Tensor& bias() const { return bias_; }

 private:
  at::Tensor weight_, bias_;
  int64_t stride_, padding_;
};

/// Over [n, in], or at every position of [n, ..., in].
class Linear {
 public:
  Linear(const Builder& builder, const std::string& name, int64_t in, int64_t out, bool bias = true,
         double weight_scale = 1);
  at::Tensor operator()(const at::Tensor& x) const;
  /// scale y + shift by unit, for the price of y.
  at::Tensor scaled(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift) const;
  const at::Tensor& bias() const { return bias_; }

 private:
  at::Tensor weight_, bias_;
};

/// A row of the weight [count, width] for each index: [n, T] -> [n, T, width].
class Embedding {
 public:
  Embedding(const Builder& builder, const std::string& name, int64_t count, int64_t width);
  at::Tensor operator()(const at::Tensor& index) const;
  /// The rows of every example, in order: [n, count, width], a view of the weight.
  at::Tensor rows_for(int64_t n) const;
  /// x weight': the same weight as a linear layer, [n, T, width] -> [n, T, count].
  at::Tensor as_linear(const at::Tensor& x) const;

 private:
  at::Tensor weight_;
};

/// y = weight (x - mean) / sqrt(var + eps) + bias with mean and (biased) variance of each position's numbers, the last axis
/// (Ba, Kiros & Hinton 2016, arXiv 1607.06450). By example, so without modes.
class LayerNorm {
 public:
  LayerNorm(const Builder& builder, const std::string& name, int64_t width, bool bias);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor normalised(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const;

  at::Tensor weight_, bias_;
};

enum class NormKind { none, batch, group };
const std::vector<std::string>& norm_names();
NormKind norm_named(const std::string& name);
/// The settings of a network whose options norm and groups are those of its norms; and for ModelEntry::variants those of
/// every norm in turn.
std::vector<std::string> norm_settings(const std::string& norm);
std::vector<std::vector<std::string>> norm_variants();
/// Whether the norm of that name takes statistics of a batch.
bool has_batch_statistics(const std::string& norm);

/// y = weight (x - mean) / sqrt(var + eps) + bias over [n, C, ...], or the identity for NormKind::none.
/// Without a learned scale the weight is 1 and no parameter.
///
/// batch (Ioffe & Szegedy 2015; ghost batches: Hoffer et al. 2017, section 4): statistics by channel, as
/// Model::norm_mode() says. Ghost batches are runs of Model::ghost_batch() consecutive examples of one
/// forward call, the last one shorter where they don't divide it; so results don't depend on how many ghost
/// batches a call holds, and a caller that splits a batch must cut at their borders. A ghost batch of one
/// example on a [n, C] layer has variance 0 and gives y = bias. group (Wu & He 2018): statistics by example
/// and group of channels; no modes.
class Norm {
 public:
  struct Variant {
    bool learned_scale = true;
    double eps = 1e-5;
  };
  Norm(const Builder& builder, const std::string& name, int64_t channels, NormKind kind, int64_t groups,
       const Variant& variant);
  Norm(const Builder& builder, const std::string& name, int64_t channels, NormKind kind, int64_t groups)
      : Norm(builder, name, channels, kind, groups, Variant{}) {}
  at::Tensor operator()(const at::Tensor& x) const;
  bool is_identity() const { return kind_ == NormKind::none; }
  /// This of layer(x), where the layer is linear: in NormMode::folded, where a batch norm is a fixed scale
  /// and shift by channel, these go into the layer's weights. The same function of the same parameters, so
  /// exact but for rounding; neither x nor its derivatives are walked through for it.
  template <class Layer>
  at::Tensor after(const Layer& layer, const at::Tensor& x) const {
    if (kind_ == NormKind::batch && layer.bias().defined()) model_->note_cancelled(layer.bias());
    if (!folds()) return (*this)(layer(x));
    const at::Tensor scale = folded_scale();
    return layer.scaled(x, scale, folded_shift(scale));
  }

 private:
  at::Tensor scale() const;
  /// Whether an example's output depends on that example alone.
  bool by_example() const;
  at::Tensor by_fixed_rule(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const;
  bool folds() const;
  at::Tensor folded_scale() const;
  at::Tensor folded_shift(const at::Tensor& scale) const;
  at::Tensor by_ghost_batches(const at::Tensor& x) const;
  at::Tensor by_own_statistics(const at::Tensor& chunk) const;
  void accumulate(const at::Tensor& mean, const at::Tensor& unbiased_variance, int64_t examples) const;

  Model* model_;
  NormKind kind_;
  int64_t groups_;
  double eps_;
  size_t slot_ = 0;
  at::Tensor weight_, bias_, running_mean_, running_var_;
};

/// Inverted dropout: in training mode each element is zeroed with probability p, the others scaled by
/// 1/(1-p); the identity otherwise. Which ones is a function of the master seed, of this layer, and of the
/// update and the position in its batch that Model::set_dropout_place() says (models/layers/dropout_mask.h),
/// drawn on the CPU: so a batch gets the same masks however it is cut into forward calls, and an example gets
/// the same ones again in a second pass.
class Dropout {
 public:
  Dropout(const Builder& builder, double p);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  Model* model_;
  size_t slot_ = 0;
  double p_;
};

/// activate(max_pool(x, 2, 2)), x as in activate(). Every activation but gelu is increasing and so could come first as well; after the
/// pooling it has a quarter of the work.
at::Tensor activated_max_pool(Activation activation, const at::Tensor& x);
/// The same of norm(layer(x)), in fewer passes where there are such (models/layers/first_convolution.h).
at::Tensor activated_max_pool(Activation activation, const Norm& norm, const Conv2d& layer,
                              const at::Tensor& x);
/// [n, C, H, W] -> [n, C]
at::Tensor global_average_pool(const at::Tensor& x);
at::Tensor global_max_pool(const at::Tensor& x);
/// Images in the memory format that convolutions are fastest in.
at::Tensor channels_last(const at::Tensor& images);

}  // namespace basin
