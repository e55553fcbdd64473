#include "models/airbench.h"

#include "core/error.h"
#include "models/registry.h"
#include "models/unit_sources.h"

namespace basin {

namespace {

constexpr double kNormEps = 1e-12;

}  // namespace

void bind_options(OptionTable& table, AirbenchOptions& options) {
  table.add("widths", options.widths, at_least(1), "channels of the blocks, each of which halves the image");
  table.add("whiten_eps", options.whiten_eps, greater_than(0),
            "added to the eigenvalues of the patches' second moment");
  table.add("logit_scale", options.logit_scale, greater_than(0), "factor on the logits");
  table.add("activation", options.activation, one_of(activation_names()),
            "activation function; gelu in the original");
  table.add("norm", options.norm, one_of(norm_names()),
            "normalisation; batch in the original; without a learned scale");
  table.add("groups", options.groups, at_least(1), "norm = \"group\": groups of channels");
}

Airbench::Airbench(const AirbenchOptions& options, const InputShape& shape, at::Generator& init)
    : activation_(activation_named(options.activation)), logit_scale_(options.logit_scale) {
  constexpr int64_t kWhiten = 2;
  int64_t side = std::min(shape.height, shape.width) - kWhiten + 1;
  for (size_t i = 0; i < options.widths.size(); ++i) side /= 2;
  if (side <= 0) {
    throw ConfigError(
        fmt::format("widths has {} entries, too many for halving images of {} x {} less a border of {}",
                    options.widths.size(), shape.height, shape.width, kWhiten - 1));
  }
  const Builder builder{*this, init};
  const NormKind kind = norm_named(options.norm);
  const auto make_conv = [&](const std::string& name, int64_t in, int64_t out) {
    return Conv2d(builder, name,
                  {in, out, /*kernel=*/3, /*stride=*/1, /*padding=*/1, /*bias=*/kind == NormKind::none,
                   /*weight_scale=*/1, /*dirac=*/true});
  };
  const auto make_norm = [&](const std::string& name, int64_t channels) {
    return Norm(builder, name, channels, kind, options.groups, {/*learned_scale=*/false, /*eps=*/kNormEps});
  };
  whiten_ = std::make_unique<WhiteningConv2d>(builder, "whiten", shape.channels, kWhiten, options.whiten_eps);
  int64_t channels = whiten_->filters();
  for (size_t i = 0; i < options.widths.size(); ++i) {
    const std::string name = fmt::format("block{}", i + 1);
    const int64_t out = options.widths[i];
    // Braces: the draws happen in this order.
    blocks_.push_back(Block{{make_conv(name + ".conv1", channels, out)},
                            make_norm(name + ".norm1", out),
                            make_conv(name + ".conv2", out, out),
                            make_norm(name + ".norm2", out)});
    channels = out;
  }
  classifier_ = std::make_unique<Linear>(builder, "fc", channels, shape.classes, /*bias=*/false);
}

at::Tensor Airbench::forward(const at::Tensor& images) {
  at::Tensor x = activate(activation_, (*whiten_)(channels_last(images)));
  for (const Block& block : blocks_) {
    x = activate(activation_, block.norm1.after(block.conv1, x));
    x = activate(activation_, block.norm2.after(block.conv2, x));
  }
  return (*classifier_)(global_max_pool(x)) * logit_scale_;
}

std::vector<UnitGroup> Airbench::unit_groups() const {
  const bool relu = activation_ == Activation::relu;
  const auto name = [](size_t block, const char* layer) { return fmt::format("block{}.{}", block, layer); };
  std::vector<UnitGroup> groups;
  append_unit_group(groups, *this, relu, {{"whiten", ""}}, {blocks_.empty() ? "fc" : name(1, "conv1")});
  for (size_t i = 1; i <= blocks_.size(); ++i) {
    append_unit_group(groups, *this, relu, {{name(i, "conv1"), name(i, "norm1")}}, {name(i, "conv2")},
                      kNormEps);
    append_unit_group(groups, *this, relu, {{name(i, "conv2"), name(i, "norm2")}},
                      {i < blocks_.size() ? name(i + 1, "conv1") : "fc"}, kNormEps);
  }
  return groups;
}

ModelEntry airbench_entry() {
  return model_entry<Airbench, AirbenchOptions>(
      {"airbench",
       "airbench94",
       "Jordan's network of airbench94: frozen whitening convolution, six 3x3 convolutions, GELU.",
       {"widths=[3, 4]", "groups=1", "activation=softplus"},
       norm_variants(),
       {"activation=relu"}},
      [](const AirbenchOptions& o) { return ModelTraits{.batch_statistics = has_batch_statistics(o.norm)}; });
}

}  // namespace basin
