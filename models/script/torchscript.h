// defines: TorchScript, a network that isn't ours, from a file of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/options.h"
#include "models/model.h"

namespace basin {

struct TorchScriptOptions {
  std::string file;
  std::string sha256;                // of the file; part of a run's name, which the file's place isn't
  bool sha256_by_hand = false;       // no option: whether it was set, and not taken from the file
  std::string start = "file";        // file | drawn
  std::vector<std::string> kinds{};  // "PATTERN=KIND"
};
void bind_options(OptionTable& table, TorchScriptOptions& options);

/// f_w of any network that torch.jit.script() or trace() saved: inputs [n, ...] -> outputs [n, ...]. Its parameters are the model's,
/// under their PyTorch names ("self.NAME" for those of the outermost module); tied ones are one. Frozen parameters and buffers of
/// floating-point numbers are buffers of the model, others (positions, counters) stay the script's own.
///
/// Kinds follow from the modules: weights and biases of a class named ...Norm... are norm_weight and norm_bias; else what is named bias is
/// one, and of the rest vectors are norm_weight (scales by unit) and others weight. `kinds` overrules, first match first.
///
/// Batch norms (whatever has running_mean and running_var) take part in the modes of models/model.h: each ghost batch is a forward
/// call of its own, and what accumulates is its mean and unbiased variance. NormMode::folded is running. Dropout draws from torch's
/// global generator, seeded by the place of a call's first example: repeatable, but another micro_batch cuts calls
/// elsewhere and so draws other masks, unless ghost batches do the cutting.
///
/// start = "file": every seed begins with the file's weights. "drawn": weights and biases of linear layers, convolutions, embeddings and
/// norms anew, as PyTorch would (U(+-1/sqrt(fan_in)), N(0, 1), 1 and 0); ConfigError for a parameter of anything else.
///
/// Runs with the JIT's graph optimiser off, whose gradients of gradients aren't known to be right, and with attention by matrix
/// products, which alone has second derivatives. The constructor tries the network on a few examples: ConfigError that names the
/// file for one without trained parameters, whose outputs aren't InputShape::output() for any n or depend on the other examples in eval mode, whose
/// batch norms were traced with their mode fixed or stand in two places, and without second derivatives. Cost: a handful of passes each
/// time, with batch norm one for each vector among the parameters.
class TorchScript : public Model {
 public:
  TorchScript(const TorchScriptOptions& options, const InputShape& shape, at::Generator& init);
  ~TorchScript() override;
  at::Tensor forward(const at::Tensor& inputs) override;
  bool has_own_layers() const override { return false; }

 private:
  struct Net;
  void take_tensors(const TorchScriptOptions& options, const std::vector<std::string>& cancelled,
                    at::Generator& init);
  /// `first`: where in forward()'s inputs these begin.
  at::Tensor run(const at::Tensor& inputs, int64_t first);
  at::Tensor by_ghost_batches(const at::Tensor& inputs);
  void accumulate(int64_t examples);

  std::unique_ptr<Net> net_;
};

}  // namespace basin
