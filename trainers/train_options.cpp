#include "trainers/train_options.h"

#include "io/enum_names.h"
#include "models/loss.h"

namespace basin {
namespace {

const EnumNames<Protocol>& protocol_names() {
  static const EnumNames<Protocol> table(
      "protocol",
      {{Protocol::epochs, "A-epochs"}, {Protocol::updates, "A-updates"}, {Protocol::matched_loss, "B"}});
  return table;
}

}  // namespace

std::optional<Protocol> protocol_named(const std::string& name) { return protocol_names().find(name); }

void bind_options(OptionTable& table, TrainOptions& o) {
  table
      .add("seed", o.seed, at_least(0),
           "master seed for initialisation, data order, augmentation, dropout and probes")
      .yardstick()
      .repetition();
  table.add("protocol", o.protocol, one_of(protocol_names().texts()),
            "A: fixed budget in epochs or updates; B: matched training loss");
  table
      .add("batch_size", o.batch_size, at_least(1),
           "logical batch size, the initial one with batch_milestones; may exceed the training set")
      .yardstick();
  table.add("batch_milestones", o.batch_milestones, between(0, 1),
            "where the batch size grows, as shares of the budget in examples; protocol A");
  table.add("batch_factor", o.batch_factor, at_least(2),
            "factor on the batch size at each of batch_milestones");
  table
      .add("batch_rate_power", o.batch_rate_power, between(0, 1),
           "multiply the rate by this power of how much the batch has grown")
      .quiet_default();
  table
      .add("micro_batch", o.micro_batch, at_least(1),
           "examples per pass; affects memory, and results only by rounding")
      .costs();
  table
      .add("ghost_batch", o.ghost_batch, at_least(0),
           "examples over which batch normalisation takes its statistics; 0: min(256, batch_size)")
      .costs();
  table
      .add("duplicates", o.duplicates, one_of({"weighted", "repeated"}),
           "compute an example that occurs k times in a batch once with weight k, or k times")
      .costs();
  table.add("learning_rate", o.learning_rate, greater_than(0), "peak learning rate, before the scaling rule");
  table.add("epochs", o.epochs, greater_than(0), "A-epochs: budget; at least one update is made").yardstick();
  table
      .add("regime_batch", o.regime_batch, at_least(0),
           "A-epochs: multiply epochs, and what the schedule counts in epochs, by "
           "ceil(batch_size/regime_batch); 0: don't")
      .yardstick();
  table.add("updates", o.updates, between(1, kMostExamples), "A-updates: budget").yardstick();
  table
      .add("target_loss", o.target_loss, greater_than(0),
           "B: loss on the full training set, in eval mode, at which to stop")
      .yardstick();
  table
      .add("max_gradients", o.max_gradients, between(1, kMostExamples),
           "B: length of the schedule and cap on the run, in image gradients")
      .yardstick();
  table.add("check_every", o.check_every, between(1, kMostExamples),
            "examples, counting duplicates, between checks of the training loss; a quarter of that near the "
            "target");
  table.add("loss_levels", o.loss_levels, greater_than(0),
            "training losses: a checkpoint at the first check at or below each");
  table.add("evaluate_every", o.evaluate_every, between(0, kMostExamples),
            "examples between evaluations of all splits; 0: only at the end");
  table.add("checkpoint_every", o.checkpoint_every, at_least(0), "updates between kept checkpoints; 0: none");
  table.add(
      "layers_every", o.layers_every, at_least(0),
      "updates between rows of per-parameter norms and trust ratios; 0: 100 to 200 rows over the budget");
  table
      .add("checkpoint_seconds", o.checkpoint_seconds, at_least(0),
           "wall time in seconds between checkpoints for resuming")
      .execution();
  table
      .add("divergence_loss", o.divergence_loss, greater_than(0),
           "a run has diverged if a batch loss, or a checked or final training loss, is above this or not "
           "finite")
      .yardstick();
  table
      .add("dtype", o.dtype, one_of({"float32", "float64"}),
           "floating-point type of parameters and arithmetic")
      .costs();
  table
      .add("autocast", o.autocast, one_of({"none", "bfloat16"}),
           "convolutions and matrix products of training batches in bfloat16; never of evaluations or probes")
      .costs();
  table
      .add("loss", o.loss, one_of(loss_names()),
           "per-example loss: of one class; of a class for each token, their mean; of numbers, or of a "
           "class's indicator")
      .costs();
  table.add(
      "label_smoothing", o.label_smoothing, half_open(0, 1),
      "cross entropies: share of each label spread over all classes, only in the loss that is trained on");
  o.hooks.bind(table);
}

}  // namespace basin
