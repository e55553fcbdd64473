#include "models/gpt.h"

#include <ATen/ATen.h>

#include "core/error.h"
#include "models/registry.h"

namespace basin {
namespace {

constexpr int64_t kExpansion = 4;

/// -inf above the diagonal.
at::Tensor causal_mask(int64_t tokens, const at::TensorOptions& options) {
  return at::full({tokens, tokens}, -std::numeric_limits<double>::infinity(), options).triu_(1);
}

}  // namespace

void bind_options(OptionTable& table, GptOptions& options) {
  table.add("layers", options.layers, at_least(1), "blocks of attention and MLP");
  table.add("heads", options.heads, at_least(1), "attention heads of a block; they divide width");
  table.add("width", options.width, at_least(1), "size of a token's vector");
  table.add("dropout", options.dropout, half_open(0, 1),
            "probability, after embeddings, on attention's weights and at the end of attention and MLP");
  table.add("bias", options.bias, anything(), "biases of linear layers and norms");
  table.add("tied", options.tied, anything(), "the head is the embedding of tokens, transposed");
  table.add("activation", options.activation, one_of(activation_names()), "activation function of the MLPs");
}

Gpt::Gpt(const GptOptions& options, const InputShape& shape, at::Generator& init)
    : options_(options), activation_(activation_named(options.activation)) {
  if (options.width % options.heads != 0)
    throw ConfigError(
        fmt::format("gpt.heads = {} violates: it must divide gpt.width = {}", options.heads, options.width));
  const Builder builder{*this, init, Initializer::normal};
  const int64_t tokens = options.tied ? std::max(shape.tokens, shape.classes) : shape.tokens;
  tokens_.emplace(builder, "tokens", tokens, options.width);
  positions_.emplace(builder, "positions", shape.example().front(), options.width);
  inputs_kept_.emplace(builder, options.dropout);
  for (int64_t i = 1; i <= options.layers; ++i)
    blocks_.push_back(make_block(builder, fmt::format("block{}", i)));
  norm_.emplace(builder, "norm", options.width, options.bias);
  if (!options.tied) head_.emplace(builder, "head", options.width, shape.classes, /*bias=*/false);
}

Gpt::Block Gpt::make_block(const Builder& builder, const std::string& name) const {
  const int64_t width = options_.width;
  const bool bias = options_.bias;
  const double at_the_end = 1 / std::sqrt(2.0 * static_cast<double>(options_.layers));
  const auto layer = [&](const char* part, int64_t in, int64_t out, double scale) {
    return Linear(builder, name + "." + part, in, out, bias, scale);
  };
  const auto dropout = [&] { return Dropout(builder, options_.dropout); };
  // Members of an aggregate are built in the order of their list: norms first, whose order in files that is.
  return {LayerNorm(builder, name + ".norm1", width, bias),
          LayerNorm(builder, name + ".norm2", width, bias),
          layer("attention", width, 3 * width, 1),
          layer("projection", width, width, at_the_end),
          layer("expand", width, kExpansion * width, 1),
          layer("shrink", kExpansion * width, width, at_the_end),
          dropout(),
          dropout(),
          dropout()};
}

at::Tensor Gpt::attend(const Block& block, const at::Tensor& x) const {
  const int64_t n = x.size(0), tokens = x.size(1), heads = options_.heads, size = options_.width / heads;
  std::vector<at::Tensor> parts;  // queries, keys, values: [n heads, T, size]
  for (const at::Tensor& part : block.attention(x).chunk(3, 2))
    parts.push_back(part.view({n, tokens, heads, size}).transpose(1, 2).reshape({n * heads, tokens, size}));
  const at::Tensor mask = causal_mask(tokens, x.options().requires_grad(false));
  const at::Tensor scores = at::baddbmm(mask, parts[0], parts[1].transpose(1, 2), /*beta=*/1,
                                        /*alpha=*/1 / std::sqrt(static_cast<double>(size)));
  const at::Tensor weights = block.weights_kept(at::softmax(scores, -1).view({n, heads, tokens, tokens}));
  const at::Tensor mixed = at::bmm(weights.view({n * heads, tokens, tokens}), parts[2]);
  return mixed.view({n, heads, tokens, size}).transpose(1, 2).reshape({n, tokens, heads * size});
}

at::Tensor Gpt::forward(const at::Tensor& tokens) {
  at::Tensor x = (*inputs_kept_)((*tokens_)(tokens) + positions_->rows_for(tokens.size(0)));
  for (const Block& block : blocks_) {
    x = x + block.attention_kept(block.projection(attend(block, block.norm1(x))));
    const at::Tensor hidden = activate(activation_, block.expand(block.norm2(x)));
    x = x + block.mlp_kept(block.shrink(hidden));
  }
  x = (*norm_)(x);
  return head_ ? (*head_)(x) : tokens_->as_linear(x);
}

ModelEntry gpt_entry() {
  return model_entry<Gpt, GptOptions>(
      {"gpt",
       "GPT",
       "A transformer that predicts the next token, as nanoGPT has it.",
       {"layers=2", "heads=2", "width=4", "activation=softplus"},
       {{"tied=true", "bias=false"}, {"tied=false", "bias=true"}},
       {"activation=relu"},
       ModelInputs::tokens},
      [](const GptOptions& o) { return ModelTraits{.dropout = o.dropout > 0}; });
}

}  // namespace basin
