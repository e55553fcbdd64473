#include "models/layers.h"

#include "core/error.h"
#include "core/nearest.h"
#include "models/layers/convolution.h"
#include "models/layers/dropout_mask.h"
#include "models/layers/first_convolution.h"
#include "models/layers/layer_calls.h"

namespace basin {

namespace {

constexpr double kNormalDeviation = 0.02, kLayerNormEps = 1e-5;

at::Tensor initial_weight(const Builder& builder, at::IntArrayRef sizes, int64_t fan_in, double scale = 1) {
  at::Tensor weight = at::empty(sizes, at::kFloat);
  if (builder.initializer == Initializer::he_normal) {
    return weight.normal_(0, scale * std::sqrt(2.0 / static_cast<double>(fan_in)), builder.generator);
  }
  if (builder.initializer == Initializer::normal)
    return weight.normal_(0, scale * kNormalDeviation, builder.generator);
  const double bound = scale / std::sqrt(static_cast<double>(fan_in));
  return weight.uniform_(-bound, bound, builder.generator);
}

at::Tensor initial_bias(const Builder& builder, int64_t size, int64_t fan_in) {
  if (builder.initializer != Initializer::uniform) return at::zeros({size}, at::kFloat);
  return initial_weight(builder, {size}, fan_in);
}

// The identity on as many channels as there are on both sides (Zagoruyko & Komodakis 2017, arXiv 1706.00388).
void start_with_identity(at::Tensor weight) {
  const int64_t channels = std::min(weight.size(0), weight.size(1)), middle = weight.size(2) / 2;
  weight.narrow(0, 0, channels).zero_();
  weight.select(3, middle).select(2, middle).narrow(0, 0, channels).fill_diagonal_(1);
}

size_t index_in(const std::vector<std::string>& names, const std::string& name, const std::string& what) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw ConfigError(unknown_name(what, name, names));
  }
  return static_cast<size_t>(found - names.begin());
}

// x scale + shift. ATen's derivative of normalisation by frozen statistics sums over all examples besides,
// whoever asks for it.
at::Tensor scaled_by_channel(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift) {
  std::vector<int64_t> channels(x.dim(), 1);
  channels[1] = -1;
  return at::addcmul(shift.view(channels), x, scale.view(channels));
}

}  // namespace

const std::vector<std::string>& activation_names() {
  static const std::vector<std::string> names{"relu", "tanh", "softplus", "gelu"};
  return names;
}

Activation activation_named(const std::string& name) {
  return static_cast<Activation>(index_in(activation_names(), name, "activation"));
}

at::Tensor activate(Activation activation, at::Tensor x) {
  switch (activation) {
    case Activation::relu:
      return at::relu_(x);
    case Activation::tanh:
      return at::tanh_(x);
    case Activation::softplus:
      return at::softplus(x);  // its backward pass needs x
    case Activation::gelu:
      return at::gelu(x);  // likewise
  }
  return x;
}

Conv2d::Conv2d(const Builder& builder, const std::string& name, const Shape& shape)
    : stride_(shape.stride), padding_(shape.padding) {
  const int64_t fan_in = shape.in * shape.kernel * shape.kernel;
  const at::Tensor weight =
      initial_weight(builder, {shape.out, shape.in, shape.kernel, shape.kernel}, fan_in, shape.weight_scale);
  if (shape.dirac) start_with_identity(weight);
  weight_ = builder.model.add_parameter(name, "weight", ParameterKind::weight, weight);
  if (shape.bias) {
    bias_ = builder.model.add_parameter(name, "bias", ParameterKind::bias,
                                        initial_bias(builder, shape.out, fan_in));
  }
}

at::Tensor Conv2d::operator()(const at::Tensor& x) const {
  return convolution(x, weight_, bias_, stride_, padding_);
}

at::Tensor Conv2d::scaled(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift) const {
  const at::Tensor bias = bias_.defined() ? at::addcmul(shift, bias_, scale) : shift;
  return convolution(x, weight_ * scale.view({-1, 1, 1, 1}), bias, stride_, padding_);
}

at::Tensor Conv2d::rectified_and_pooled(const at::Tensor& x) const {
  if (stride_ == 1 && padding_ == 1) return rectified_pooled_convolution(x, weight_, bias_);
  return rectified_max_pool((*this)(x));
}

Linear::Linear(const Builder& builder, const std::string& name, int64_t in, int64_t out, bool bias,
               double weight_scale) {
  weight_ = builder.model.add_parameter(name, "weight", ParameterKind::weight,
                                        initial_weight(builder, {out, in}, in, weight_scale));
  if (bias)
    bias_ = builder.model.add_parameter(name, "bias", ParameterKind::bias, initial_bias(builder, out, in));
}

at::Tensor Linear::operator()(const at::Tensor& x) const { return linear_map(x, weight_, bias_); }

at::Tensor Linear::scaled(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift) const {
  const at::Tensor bias = bias_.defined() ? at::addcmul(shift, bias_, scale) : shift;
  return linear_map(x, weight_ * scale.unsqueeze(1), bias);
}

Embedding::Embedding(const Builder& builder, const std::string& name, int64_t count, int64_t width) {
  weight_ = builder.model.add_parameter(name, "weight", ParameterKind::weight,
                                        initial_weight(builder, {count, width}, width));
}

at::Tensor Embedding::operator()(const at::Tensor& index) const { return embedded(weight_, index); }

at::Tensor Embedding::rows_for(int64_t n) const { return expanded_rows(weight_, n); }

at::Tensor Embedding::as_linear(const at::Tensor& x) const { return linear_map(x, weight_, {}); }

LayerNorm::LayerNorm(const Builder& builder, const std::string& name, int64_t width, bool bias) {
  weight_ =
      builder.model.add_parameter(name, "weight", ParameterKind::norm_weight, at::ones({width}, at::kFloat));
  if (bias)
    bias_ =
        builder.model.add_parameter(name, "bias", ParameterKind::norm_bias, at::zeros({width}, at::kFloat));
}

at::Tensor LayerNorm::operator()(const at::Tensor& x) const {
  const at::Tensor y = normalised(x, weight_, bias_);
  if (LayerCalls* calls = LayerCalls::active()) {
    const auto factor = [this](const at::Tensor& some) { return normalised(some, {}, {}); };
    LayerCall call{LayerCall::Kind::scaling, weight_, bias_, x, 1, 0, factor};
    call.channels_last = true;
    calls->add(std::move(call), y);
  }
  return y;
}

at::Tensor LayerNorm::normalised(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias) const {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, kLayerNormEps);
}

const std::vector<std::string>& norm_names() {
  static const std::vector<std::string> names{"none", "batch", "group"};
  return names;
}

NormKind norm_named(const std::string& name) {
  return static_cast<NormKind>(index_in(norm_names(), name, "norm"));
}

std::vector<std::string> norm_settings(const std::string& norm) { return {"norm=" + norm, "groups=1"}; }

std::vector<std::vector<std::string>> norm_variants() {
  std::vector<std::vector<std::string>> variants;
  for (const std::string& norm : norm_names()) variants.push_back(norm_settings(norm));
  return variants;
}

bool has_batch_statistics(const std::string& norm) { return norm_named(norm) == NormKind::batch; }

Norm::Norm(const Builder& builder, const std::string& name, int64_t channels, NormKind kind, int64_t groups,
           const Variant& variant)
    : model_(&builder.model), kind_(kind), groups_(groups), eps_(variant.eps) {
  if (kind == NormKind::none) return;
  if (kind == NormKind::group && channels % groups != 0) {
    throw ConfigError(
        fmt::format("groups = {} violates: it must divide the {} channels of {}", groups, channels, name));
  }
  if (variant.learned_scale) {
    weight_ = builder.model.add_parameter(name, "weight", ParameterKind::norm_weight,
                                          at::ones({channels}, at::kFloat));
  }
  bias_ =
      builder.model.add_parameter(name, "bias", ParameterKind::norm_bias, at::zeros({channels}, at::kFloat));
  if (kind == NormKind::batch) {
    running_mean_ = builder.model.add_buffer(name, "running_mean", at::zeros({channels}, at::kFloat));
    running_var_ = builder.model.add_buffer(name, "running_var", at::ones({channels}, at::kFloat));
    slot_ = builder.model.add_batch_norm();
  }
}

at::Tensor Norm::operator()(const at::Tensor& x) const {
  if (kind_ == NormKind::none) return x;
  LayerCalls* calls = LayerCalls::active();
  at::Tensor y;
  if (!by_example()) {
    y = by_ghost_batches(x);
  } else if (calls && kind_ == NormKind::batch) {
    const at::Tensor fixed = folded_scale();
    y = scaled_by_channel(x, fixed, folded_shift(fixed.detach()));  // each parameter once
  } else {
    y = by_fixed_rule(x, scale(), bias_);
  }
  if (calls) {
    using Kind = LayerCall::Kind;
    const auto factor = [this](const at::Tensor& some) { return by_fixed_rule(some, {}, {}); };
    calls->add({by_example() ? Kind::scaling : Kind::batch_statistics, weight_, bias_, x, 1, 0, factor}, y);
  }
  return y;
}

bool Norm::by_example() const {
  return kind_ == NormKind::group || model_->norm_mode() == NormMode::running ||
         model_->norm_mode() == NormMode::folded;
}

at::Tensor Norm::by_fixed_rule(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const {
  if (kind_ == NormKind::group) return at::group_norm(x, groups_, weight, bias, eps_);
  return std::get<0>(at::native_batch_norm(x, weight, bias, running_mean_, running_var_,
                                           /*training=*/false, /*momentum=*/0, eps_));
}

bool Norm::folds() const { return kind_ == NormKind::batch && model_->norm_mode() == NormMode::folded; }

// Ones, not an undefined weight: with that the second derivative of torch's batch norm forgets the bias.
at::Tensor Norm::scale() const { return weight_.defined() ? weight_ : at::ones_like(bias_.detach()); }

at::Tensor Norm::folded_scale() const { return scale() / at::sqrt(running_var_ + eps_); }

at::Tensor Norm::folded_shift(const at::Tensor& scale) const {
  return at::addcmul(bias_, running_mean_, scale, -1);
}

at::Tensor Norm::by_ghost_batches(const at::Tensor& x) const {
  const int64_t ghost_batch = model_->ghost_batch();
  if (ghost_batch == 0 || ghost_batch >= x.size(0)) return by_own_statistics(x);
  std::vector<at::Tensor> normalised;
  for (const at::Tensor& chunk : at::split(x, ghost_batch)) normalised.push_back(by_own_statistics(chunk));
  return at::cat(normalised);
}

at::Tensor Norm::by_own_statistics(const at::Tensor& chunk) const {
  at::Tensor mean, unbiased_variance;
  if (model_->norm_mode() == NormMode::accumulate) {
    mean = at::zeros_like(running_mean_);
    unbiased_variance = at::ones_like(running_var_);
  }
  // With momentum 1 the "running" statistics handed in come back as this chunk's own.
  at::Tensor y = std::get<0>(at::native_batch_norm(chunk, scale(), bias_, mean, unbiased_variance,
                                                   /*training=*/true, /*momentum=*/1, eps_));
  if (mean.defined()) {
    const bool one_value = chunk.numel() == chunk.size(1);
    if (one_value) unbiased_variance.zero_();  // not 0/0
    accumulate(mean, unbiased_variance, chunk.size(0));
  }
  return y;
}

void Norm::accumulate(const at::Tensor& mean, const at::Tensor& unbiased_variance, int64_t examples) const {
  at::NoGradGuard no_grad;
  int64_t& total = model_->accumulated_examples(slot_);
  total += examples;
  const double share = static_cast<double>(examples) / static_cast<double>(total);
  running_mean_.mul_(1 - share).add_(mean, share);
  running_var_.mul_(1 - share).add_(unbiased_variance, share);
}

Dropout::Dropout(const Builder& builder, double p) : model_(&builder.model), p_(p) {
  if (p > 0) slot_ = builder.model.add_dropout();
}

at::Tensor Dropout::operator()(const at::Tensor& x) const {
  if (p_ == 0 || !model_->is_training()) return x;
  const at::Tensor kept = dropout_mask(x.sizes(), p_, model_->dropout_key(slot_), model_->dropout_place());
  return x * kept.to(x.options()).div_(1 - p_);
}

at::Tensor activated_max_pool(Activation activation, const at::Tensor& x) {
  return activation == Activation::relu ? rectified_max_pool(x) : activate(activation, max_pool(x, 2, 2));
}

at::Tensor activated_max_pool(Activation activation, const Norm& norm, const Conv2d& layer,
                              const at::Tensor& x) {
  if (activation == Activation::relu && norm.is_identity()) return layer.rectified_and_pooled(x);
  return activated_max_pool(activation, norm.after(layer, x));
}

at::Tensor global_average_pool(const at::Tensor& x) { return x.mean({2, 3}); }

at::Tensor global_max_pool(const at::Tensor& x) {
  return at::max_pool2d(x, {x.size(2), x.size(3)}).flatten(1);
}

at::Tensor channels_last(const at::Tensor& images) {
  return images.contiguous(at::MemoryFormat::ChannelsLast);
}

}  // namespace basin
