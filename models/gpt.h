// defines: Gpt, a transformer that predicts the next token.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/options.h"
#include "models/layers.h"

namespace basin {

struct GptOptions {
  int64_t layers = 4;
  int64_t heads = 4;
  int64_t width = 128;
  double dropout = 0;
  bool bias = false;
  bool tied = true;
  std::string activation = "gelu";
};
void bind_options(OptionTable& table, GptOptions& options);

/// Tokens [n, T] -> logits [n, T, V] of the token after each, from it and those before it alone. GPT-2 (Radford et al. 2019) as
/// nanoGPT has it:
///   x = tokens[i] + positions[t]
///   x += projection(attention(norm1(x)));  x += shrink(activation(expand(norm2(x))))     for each of the layers
///   logits = norm(x) tokens'  (tied), or head(norm(x))
/// with LayerNorm before each part ("pre-norm"), learned positions, hidden layers four times as wide, and heads
///   softmax(q k' / sqrt(width / heads) + mask) v
/// by matrix products, which have derivatives of every order; the fused kernels have no second. Weights start N(0, 0.02^2), those that
/// end on the residual sum over sqrt(2 layers). Dropout stands where nanoGPT's does: after the embeddings, on the attention's weights,
/// and at the end of both parts.
///
/// T is the data's window (data.context) and V its number of tokens. With the defaults, T = 64 and V = 65: 804,096 parameters
/// (nanoGPT leaves out the positions and says 0.80 million). Memory of attention: n heads T^2 numbers per layer. Frozen norm statistics,
/// unit groups and folding don't exist here; layers are named tokens, positions, block1.norm1, block1.attention, ...
class Gpt : public Model {
 public:
  Gpt(const GptOptions& options, const InputShape& shape, at::Generator& init);
  at::Tensor forward(const at::Tensor& tokens) override;

 private:
  struct Block {
    LayerNorm norm1, norm2;
    Linear attention, projection, expand, shrink;
    Dropout weights_kept, attention_kept, mlp_kept;
  };
  Block make_block(const Builder& builder, const std::string& name) const;
  at::Tensor attend(const Block& block, const at::Tensor& x) const;

  GptOptions options_;
  Activation activation_;
  std::optional<Embedding> tokens_, positions_;
  std::optional<Dropout> inputs_kept_;
  std::vector<Block> blocks_;
  std::optional<LayerNorm> norm_;
  std::optional<Linear> head_;  // none where it is tied
};

}  // namespace basin
