#include "models/davidnet.h"

#include "core/error.h"
#include "models/registry.h"
#include "models/unit_sources.h"

namespace basin {

void bind_options(OptionTable& table, DavidNetOptions& options) {
  table.add("width", options.width, at_least(1), "channels of the first layer, doubled in the next three");
  table.add("logit_scale", options.logit_scale, greater_than(0), "factor on the logits");
  table.add("activation", options.activation, one_of(activation_names()),
            "activation function; relu in the original");
  table.add("norm", options.norm, one_of(norm_names()), "normalisation; batch in the original");
  table.add("groups", options.groups, at_least(1), "norm = \"group\": groups of channels");
}

DavidNet::DavidNet(const DavidNetOptions& options, const InputShape& shape, at::Generator& init)
    : activation_(activation_named(options.activation)), logit_scale_(options.logit_scale) {
  constexpr int64_t kHalvings = 3;
  if (std::min(shape.height, shape.width) >> kHalvings == 0) {
    throw ConfigError(fmt::format("images of {} x {} are too small for davidnet, which halves them {} times",
                                  shape.height, shape.width, kHalvings));
  }
  const Builder builder{*this, init};
  const NormKind norm = norm_named(options.norm);
  const auto make_block = [&](const std::string& name, int64_t in, int64_t out) {
    Conv2d::Shape conv{in, out, /*kernel=*/3};
    conv.padding = 1;
    conv.bias = norm == NormKind::none;
    if (conv.bias) conv.weight_scale = std::sqrt(6.0);
    // Braces: the draws happen in this order.
    return Block{Conv2d(builder, name + ".conv", conv),
                 Norm(builder, name + ".norm", out, norm, options.groups)};
  };
  prep_ = std::make_unique<Block>(make_block("prep", shape.channels, options.width));
  int64_t channels = options.width;
  for (int64_t i = 1; i <= kHalvings; ++i) {
    const std::string name = fmt::format("layer{}", i);
    const int64_t out = 2 * channels;
    Layer layer{make_block(name, channels, out), {}};
    if (i != 2) {
      layer.residual.push_back(make_block(name + ".res1", out, out));
      layer.residual.push_back(make_block(name + ".res2", out, out));
    }
    layers_.push_back(std::move(layer));
    channels = out;
  }
  classifier_ = std::make_unique<Linear>(builder, "fc", channels, shape.classes, /*bias=*/false);
}

at::Tensor DavidNet::apply(const Block& block, const at::Tensor& x, bool pool) const {
  const at::Tensor y = block.norm.after(block.conv, x);
  return pool ? activated_max_pool(activation_, y) : activate(activation_, y);
}

at::Tensor DavidNet::forward(const at::Tensor& images) {
  at::Tensor x = apply(*prep_, channels_last(images));
  for (const Layer& layer : layers_) {
    x = apply(layer.first, x, /*pool=*/true);
    at::Tensor y = x;
    for (const Block& block : layer.residual) y = apply(block, y);
    if (!layer.residual.empty()) x = x + y;
  }
  return (*classifier_)(global_max_pool(x)) * logit_scale_;
}

std::vector<UnitGroup> DavidNet::unit_groups() const {
  const auto source = [](const std::string& block) { return UnitSource{block + ".conv", block + ".norm"}; };
  const bool relu = activation_ == Activation::relu;
  std::vector<UnitGroup> groups;
  append_unit_group(groups, *this, relu, {source("prep")}, {"layer1.conv"});
  for (size_t i = 1; i <= layers_.size(); ++i) {
    const std::string layer = fmt::format("layer{}", i);
    const std::string next = i < layers_.size() ? fmt::format("layer{}.conv", i + 1) : "fc";
    if (layers_[i - 1].residual.empty()) {
      append_unit_group(groups, *this, relu, {source(layer)}, {next});
    } else {
      const std::string first = layer + ".res1", second = layer + ".res2";
      append_unit_group(groups, *this, relu, {source(layer), source(second)}, {first + ".conv", next});
      append_unit_group(groups, *this, relu, {source(first)}, {second + ".conv"});
    }
  }
  return groups;
}

ModelEntry davidnet_entry() {
  return model_entry<DavidNet, DavidNetOptions>(
      {"davidnet",
       "DavidNet",
       "Page's residual network of nine weight layers, made for speed.",
       {"width=2", "groups=2", "activation=softplus"},
       norm_variants(),
       {"activation=relu"}},
      [](const DavidNetOptions& o) { return ModelTraits{.batch_statistics = has_batch_statistics(o.norm)}; });
}

}  // namespace basin
