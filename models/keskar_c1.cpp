#include "models/keskar_c1.h"

#include "models/registry.h"
#include "models/unit_sources.h"

namespace basin {

void bind_options(OptionTable& table, KeskarC1Options& options) {
  table.add("width", options.width, at_least(1), "channels of both convolutions; 64 in the paper");
  table.add("hidden", options.hidden, at_least(1),
            "sizes of the hidden linear layers; [384, 192] in the paper");
  table.add("dropout", options.dropout, half_open(0, 1),
            "probability of a zero after each hidden linear layer");
  table.add("activation", options.activation, one_of(activation_names()),
            "activation function, after each norm");
  table.add("norm", options.norm, one_of(norm_names()), "normalisation; batch in the paper");
  table.add("groups", options.groups, at_least(1), "norm = \"group\": groups of channels");
}

KeskarC1::KeskarC1(const KeskarC1Options& options, const InputShape& shape, at::Generator& init)
    : activation_(activation_named(options.activation)) {
  const Builder builder{*this, init};
  const NormKind norm = norm_named(options.norm);
  int64_t channels = shape.channels, height = shape.height, width = shape.width;
  const auto add_norm = [&](int64_t size) {
    norms_.emplace_back(builder, fmt::format("norm{}", norms_.size() + 1), size, norm, options.groups);
  };
  for (int i = 1; i <= 2; ++i) {
    convolutions_.emplace_back(
        builder, fmt::format("conv{}", i),
        Conv2d::Shape{channels, options.width, /*kernel=*/5, /*stride=*/1, /*padding=*/2});
    add_norm(options.width);
    channels = options.width;
    height = (height + 1) / 2;
    width = (width + 1) / 2;
  }
  int64_t size = channels * height * width;
  for (int64_t hidden : options.hidden) {
    linears_.emplace_back(builder, fmt::format("fc{}", linears_.size() + 1), size, hidden);
    add_norm(hidden);
    dropouts_.emplace_back(builder, options.dropout);
    size = hidden;
  }
  linears_.emplace_back(builder, fmt::format("fc{}", linears_.size() + 1), size, shape.classes);
}

at::Tensor KeskarC1::forward(const at::Tensor& images) {
  at::Tensor x = channels_last(images);
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    // Activation after pooling: the same values, since it is increasing, at a quarter of the work.
    x = max_pool(norms_[i].after(convolutions_[i], x), 3, 2, /*padding=*/1);
    x = activate(activation_, x);
  }
  x = x.flatten(1);
  for (size_t i = 0; i + 1 < linears_.size(); ++i) {
    x = dropouts_[i](activate(activation_, norms_[convolutions_.size() + i].after(linears_[i], x)));
  }
  return linears_.back()(x);
}

std::vector<UnitGroup> KeskarC1::unit_groups() const {
  std::vector<std::string> layers;
  for (size_t i = 1; i <= convolutions_.size(); ++i) layers.push_back(fmt::format("conv{}", i));
  for (size_t i = 1; i <= linears_.size(); ++i) layers.push_back(fmt::format("fc{}", i));
  std::vector<UnitGroup> groups;
  for (size_t i = 0; i < norms_.size(); ++i) {
    append_unit_group(groups, *this, activation_ == Activation::relu,
                      {{layers[i], fmt::format("norm{}", i + 1)}}, {layers[i + 1]});
  }
  return groups;
}

ModelEntry keskar_c1_entry() {
  std::vector<std::vector<std::string>> variants = norm_variants();
  variants.push_back({"dropout=0.0"});
  return model_entry<KeskarC1, KeskarC1Options>(
      {"keskar_c1",
       "C1",
       "Keskar et al.'s shallow convolutional network C1, with batch norm and dropout.",
       {"width=4", "hidden=[6, 4]", "groups=2", "activation=softplus"},
       std::move(variants),
       {"activation=relu"}},
      [](const KeskarC1Options& o) {
        return ModelTraits{.batch_statistics = has_batch_statistics(o.norm), .dropout = o.dropout > 0};
      });
}

}  // namespace basin
