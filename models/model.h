// defines: Model, the base of every network; InputShape.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/parameter.h"
#include "models/layers/dropout_mask.h"
#include "models/unit_groups.h"

namespace basin {

struct InputShape {
  int64_t channels = 3, height = 32, width = 32, classes = 10;
  std::vector<int64_t> sizes = {};  // of one example where it isn't channels x height x width
  int64_t tokens = 0;               // inputs are integers below this; 0: floating-point numbers
  int64_t labels = 0;               // per example where each of its tokens has one; 0: the example has one

  std::vector<int64_t> example() const;
  /// Sizes of what the network makes of one example: [classes] or [labels, classes].
  std::vector<int64_t> output() const;
};

/// How batch normalisation layers take their statistics in a forward pass.
enum class NormMode {
  ghost_batch,  // training: every `ghost_batch` consecutive examples are normalised by their own mean and
                // variance
  accumulate,   // the same, and the statistics are averaged into the running ones (no gradient needed)
  running,      // evaluation: the running statistics, frozen
  folded,       // the same function, computed in the linear layers before (Norm::after): probes
};

/// Base of every network. torch's own train()/is_training() switches dropout alone; normalisation follows
/// norm_mode().
///
/// Derived constructors build the layers (models/layers.h), which register parameters, buffers and themselves
/// here. Initial weights come from the generator handed to the constructor, so from the seed stream "init"
/// alone; what starts from images is a buffer, filled by prepare(). Layers refer to their model, so a model
/// is not copied; move the tensors, not the object.
class Model : public torch::nn::Module {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// Inputs [n, InputShape::example()] -> outputs [n, InputShape::output()].
  virtual at::Tensor forward(const at::Tensor& inputs) = 0;

  /// How many training images prepare() wants; 0: the model doesn't start from images.
  virtual int64_t images_to_prepare() const { return 0; }
  /// Fills the buffers that start from images, once before the first update and from then on kept in
  /// checkpoints: normalised training images [n, C, H, W] on the CPU, without augmentation. Parameters stay
  /// as they are.
  virtual void prepare(const at::Tensor& /*images*/) {}

  /// All trainable parameters in a fixed order; the order of ParameterVector, checkpoints and optimiser
  /// state.
  const std::vector<ParameterInfo>& parameter_table() const { return parameter_table_; }
  /// What is part of the function but not trained: running statistics, "norm1.running_mean",
  /// "norm1.running_var", and frozen weights.
  const NamedTensors& buffer_table() const { return buffer_table_; }
  int64_t parameter_count() const;
  /// Whether it is built from models/layers.h, whose layers note their calls, fold norms and follow Autocast.
  virtual bool has_own_layers() const { return true; }
  /// Whether it is a bias that a batch norm subtracts again, as forward passes have shown: with the statistics of a batch, in training, the
  /// function doesn't depend on it; with frozen ones it does.
  bool is_cancelled(const at::Tensor& parameter) const;
  /// Hidden units that may change places without changing the function; none where nothing is known.
  virtual std::vector<UnitGroup> unit_groups() const { return {}; }

  /// ghost_batch 0: all examples of a forward call are one ghost batch.
  void set_norm_mode(NormMode mode, int64_t ghost_batch = 0);
  NormMode norm_mode() const { return norm_mode_; }
  int64_t ghost_batch() const { return ghost_batch_; }
  /// Forgets the running statistics (mean 0, variance 1), so that the next forward passes in
  /// NormMode::accumulate average from scratch: each ghost batch by its number of examples, variances
  /// unbiased.
  void reset_running_statistics();
  bool has_batch_statistics() const { return !accumulated_examples_.empty(); }

  /// Gives each dropout layer a key of its own, layer i derive_seed(master_seed, "dropout", i).
  void seed_dropout(uint64_t master_seed);
  /// Before a forward pass in training mode: whose masks its examples get (models/layers/dropout_mask.h). Two
  /// passes at the same place have the same masks.
  void set_dropout_place(const DropoutPlace& place) { dropout_place_ = place; }
  bool has_dropout() const { return !dropout_keys_.empty(); }

  // For layers, while a derived constructor runs.
  at::Tensor add_parameter(const std::string& layer, const std::string& name, ParameterKind kind,
                           at::Tensor initial);
  at::Tensor add_buffer(const std::string& layer, const std::string& name, at::Tensor initial);
  /// A slot for dropout_key().
  size_t add_dropout();
  /// Only after seed_dropout() and set_dropout_place().
  uint64_t dropout_key(size_t dropout) const;
  const DropoutPlace& dropout_place() const;
  /// While a forward pass runs.
  void note_cancelled(const at::Tensor& bias);
  /// A slot for accumulated_examples().
  size_t add_batch_norm();
  /// Examples averaged so far into the running statistics of one batch normalisation layer.
  int64_t& accumulated_examples(size_t batch_norm) { return accumulated_examples_.at(batch_norm); }

 private:
  std::vector<ParameterInfo> parameter_table_;
  NamedTensors buffer_table_;
  std::vector<at::Tensor> cancelled_;
  NormMode norm_mode_ = NormMode::running;
  int64_t ghost_batch_ = 0;
  std::vector<int64_t> accumulated_examples_;
  std::vector<std::optional<uint64_t>> dropout_keys_;
  std::optional<DropoutPlace> dropout_place_;
};

}  // namespace basin
