#include "models/small_cnn.h"

#include "core/error.h"
#include "models/registry.h"
#include "models/unit_sources.h"

namespace basin {

namespace {

int64_t halved(int64_t size, bool pool) { return pool ? size / 2 : (size + 1) / 2; }

}  // namespace

void bind_options(OptionTable& table, SmallCnnOptions& options) {
  table.add("widths", options.widths, at_least(1),
            "channels of the convolutions, each of which halves the image");
  table.add("activation", options.activation, one_of(activation_names()),
            "activation function, after each convolution");
  table.add("downsample", options.downsample, one_of({"pool", "stride"}),
            "2x2 max-pooling, or convolutions of stride 2");
  table.add("kernel", options.kernel, between(1, 11), "kernel size of the convolutions, odd");
  table.add("norm", options.norm, one_of(norm_names()), "normalisation between convolution and activation");
  table.add("groups", options.groups, at_least(1), "norm = \"group\": groups of channels");
}

SmallCnn::SmallCnn(const SmallCnnOptions& options, const InputShape& shape, at::Generator& init)
    : activation_(activation_named(options.activation)), pool_(options.downsample == "pool") {
  if (options.kernel % 2 == 0)
    throw ConfigError(fmt::format("kernel = {} violates: it must be odd", options.kernel));
  const Builder builder{*this, init};
  int64_t channels = shape.channels, height = shape.height, width = shape.width;
  for (size_t i = 0; i < options.widths.size(); ++i) {
    const int64_t out = options.widths[i];
    convolutions_.emplace_back(builder, fmt::format("conv{}", i + 1),
                               Conv2d::Shape{channels, out, options.kernel, /*stride=*/pool_ ? 1 : 2,
                                             /*padding=*/options.kernel / 2});
    norms_.emplace_back(builder, fmt::format("norm{}", i + 1), out, norm_named(options.norm), options.groups);
    channels = out;
    height = halved(height, pool_);
    width = halved(width, pool_);
  }
  if (height == 0 || width == 0) {
    throw ConfigError(fmt::format("widths has {} entries, too many for halving images of {} x {}",
                                  options.widths.size(), shape.height, shape.width));
  }
  classifier_ = std::make_unique<Linear>(builder, "fc", channels * height * width, shape.classes);
}

at::Tensor SmallCnn::forward(const at::Tensor& images) {
  at::Tensor x = channels_last(images);
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    x = pool_ ? activated_max_pool(activation_, norms_[i], convolutions_[i], x)
              : activate(activation_, norms_[i].after(convolutions_[i], x));
  }
  return (*classifier_)(x.flatten(1));
}

std::vector<UnitGroup> SmallCnn::unit_groups() const {
  std::vector<UnitGroup> groups;
  const size_t last = convolutions_.size();
  for (size_t i = 1; i <= last; ++i) {
    append_unit_group(groups, *this, activation_ == Activation::relu,
                      {{fmt::format("conv{}", i), fmt::format("norm{}", i)}},
                      {i < last ? fmt::format("conv{}", i + 1) : "fc"});
  }
  return groups;
}

ModelEntry small_cnn_entry() {
  return model_entry<SmallCnn, SmallCnnOptions>(
      {"small_cnn",
       "small CNN",
       "3x3 convolutions, each halving the image, and a linear layer.",
       {"widths=[3, 4]", "activation=softplus"},
       norm_variants(),
       {"activation=relu"}},
      [](const SmallCnnOptions& o) { return ModelTraits{.batch_statistics = has_batch_statistics(o.norm)}; });
}

}  // namespace basin
