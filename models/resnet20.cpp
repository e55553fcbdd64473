#include "models/resnet20.h"

#include "models/registry.h"
#include "models/unit_sources.h"

namespace basin {

namespace {

Conv2d conv3x3(const Builder& builder, const std::string& name, int64_t in, int64_t out, int64_t stride,
               bool bias, double weight_scale = 1) {
  return Conv2d(builder, name,
                Conv2d::Shape{in, out, /*kernel=*/3, stride, /*padding=*/1, bias, weight_scale});
}

// Option A of the paper: no parameters.
at::Tensor shortcut(const at::Tensor& x, int64_t new_channels, int64_t stride) {
  if (new_channels == 0 && stride == 1) return x;
  const at::Tensor pixels = x.slice(2, 0, x.size(2), stride).slice(3, 0, x.size(3), stride);
  const int64_t before = new_channels / 2, after = new_channels - before;
  return at::constant_pad_nd(pixels, {0, 0, 0, 0, before, after});
}

}  // namespace

void bind_options(OptionTable& table, ResNet20Options& options) {
  table.add("width", options.width, at_least(1),
            "channels of the first stage, doubled in the next two; 16 in the paper");
  table.add("blocks", options.blocks, at_least(1), "blocks per stage; 3 make 20 layers");
  table.add("activation", options.activation, one_of(activation_names()),
            "activation function; relu in the paper");
  table.add("norm", options.norm, one_of(norm_names()), "normalisation; batch in the paper");
  table.add("groups", options.groups, at_least(1), "norm = \"group\": groups of channels");
}

ResNet20::ResNet20(const ResNet20Options& options, const InputShape& shape, at::Generator& init)
    : activation_(activation_named(options.activation)) {
  const Builder builder{*this, init, Initializer::he_normal};
  const NormKind norm = norm_named(options.norm);
  int64_t channels = options.width;
  conv1_ = std::make_unique<Conv2d>(
      conv3x3(builder, "conv1", shape.channels, channels, 1, norm == NormKind::none));
  norm1_ = std::make_unique<Norm>(builder, "norm1", channels, norm, options.groups);
  for (int64_t stage = 1; stage <= 3; ++stage) {
    const int64_t out = options.width << (stage - 1);
    for (int64_t i = 1; i <= options.blocks; ++i) {
      const int64_t stride = (stage > 1 && i == 1) ? 2 : 1;
      blocks_.push_back(
          make_block(builder, fmt::format("stage{}.block{}", stage, i), channels, out, stride, options));
      channels = out;
    }
  }
  classifier_ = std::make_unique<Linear>(builder, "fc", channels, shape.classes);
}

ResNet20::Block ResNet20::make_block(const Builder& builder, const std::string& name, int64_t in, int64_t out,
                                     int64_t stride, const ResNet20Options& options) {
  const NormKind norm = norm_named(options.norm);
  const bool bias = norm == NormKind::none;
  const double last_scale =
      norm == NormKind::none ? 1 / std::sqrt(3.0 * static_cast<double>(options.blocks)) : 1;
  // Braces: the draws happen in this order.
  return Block{in,
               out,
               stride,
               conv3x3(builder, name + ".conv1", in, out, stride, bias),
               Norm(builder, name + ".norm1", out, norm, options.groups),
               conv3x3(builder, name + ".conv2", out, out, 1, bias, last_scale),
               Norm(builder, name + ".norm2", out, norm, options.groups)};
}

at::Tensor ResNet20::apply(const Block& block, const at::Tensor& x) const {
  at::Tensor y = activate(activation_, block.norm1.after(block.conv1, x));
  y = block.norm2.after(block.conv2, y);
  y.add_(shortcut(x, block.out - block.in, block.stride));
  return activate(activation_, y);
}

at::Tensor ResNet20::forward(const at::Tensor& images) {
  at::Tensor x = activate(activation_, norm1_->after(*conv1_, channels_last(images)));
  for (const Block& block : blocks_) x = apply(block, x);
  return (*classifier_)(global_average_pool(x));
}

// Inside of blocks alone: the stream between them crosses stages, where some channels become others.
std::vector<UnitGroup> ResNet20::unit_groups() const {
  std::vector<UnitGroup> groups;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const size_t a_stage = blocks_.size() / 3;
    const std::string block = fmt::format("stage{}.block{}", i / a_stage + 1, i % a_stage + 1);
    append_unit_group(groups, *this, activation_ == Activation::relu, {{block + ".conv1", block + ".norm1"}},
                      {block + ".conv2"});
  }
  return groups;
}

ModelEntry resnet20_entry() {
  return model_entry<ResNet20, ResNet20Options>(
      {"resnet20",
       "ResNet-20",
       "He et al.'s CIFAR ResNet-20, option-A shortcuts.",
       {"width=2", "blocks=1", "groups=2", "activation=softplus"},
       norm_variants(),
       {"activation=relu"}},
      [](const ResNet20Options& o) { return ModelTraits{.batch_statistics = has_batch_statistics(o.norm)}; });
}

}  // namespace basin
