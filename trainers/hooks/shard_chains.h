// defines: ShardChains, independent runs on parts of the data, whose weights are combined.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainers/hooks/weight_copy.h"
#include "trainers/update_hook.h"

namespace basin {

struct ShardOptions {
  int64_t shards = 0;  // chains on as many parts of the training set; 0: one run on all of it
};
void bind_options(OptionTable& table, ShardOptions& options);

/// k = `shards` chains from the same first weights, each on a part of the training set that is its own (a random 1/k), with an optimiser
/// of its own and batches of batch_size; they never hear of one another. Update t is the next one of chain (t - 1) mod k, at the rate that
/// the schedule has for t, so that all have the same schedule and the run the examples of a run of one. The run's weights, which are
/// evaluated, checked and stored, are the mean of the chains' (Zinkevich et al., NeurIPS 2010, algorithm 3).
///
/// At the end, besides: the chains by themselves, and the centre of a product of Gaussians fitted to samples of each chain's last quarter
/// (gaussian_product(); Neiswanger et al. 2014, asymptotically exact where chains sample a posterior, which iterates of SGD don't).
///
/// Cost: four copies of weights and optimiser state in each update, k passes over the test split and an evaluation at the end; memory: k
/// times weights, state and kSamples weights in float64. What can go wrong: chains that end in different basins, between which the mean
/// is worse than each.
class ShardChains final : public UpdateHook {
 public:
  using Options = ShardOptions;
  static void check(const Options& options, const HookCheck& run);
  static void plan(const Options& options, BatchPlan& plan) { plan.shards = options.shards > 0; }
  static HookCost cost(const Options& options);
  static UpdatesNeeded updates_needed(const Options& options);
  static std::unique_ptr<UpdateHook> make(const Options& options, const HookSetup& setup);
  static constexpr int64_t kSamples = 16, kDirections = 8;  // of each chain; of the product's subspace

  /// The examples of shard `number` of `shards`: a random partition of 0 ... n - 1, by the seed, into sizes that differ by one at most.
  static std::vector<int64_t> examples_of(int64_t seed, int64_t n, int64_t shards, int64_t number);
  /// In which order they come up: their places in that list, epoch after epoch.
  static ExampleStream stream_of(int64_t seed, int64_t number, size_t examples);

  ShardChains(int64_t shards, const HookSetup& setup);

  void before_gradient(OngoingUpdate& update) override;
  void after_update(int64_t update) override;
  void at_end(Summary& summary, bool diverged) override;
  void after_end(Summary& summary, bool diverged) override;
  void save(Checkpoint& checkpoint) const override;
  void restore(const Checkpoint& checkpoint) override;

 private:
  struct Chain {
    std::vector<int64_t> examples;  // of the training split, by its stream's numbers
    ExampleStream stream;
    WeightCopy weights;
    NamedTensors optimizer;
    std::vector<at::Tensor> samples;  // [n], float64, on the host
  };
  int64_t count() const { return static_cast<int64_t>(chains_.size()); }
  Chain& chain_of(int64_t update) { return chains_[static_cast<size_t>((update - 1) % count())]; }
  int64_t step_of(int64_t update) const { return (update - 1) / count(); }  // of its chain, from 0
  bool takes_sample(int64_t update) const;
  void put_mean() const;
  double accuracy_by_themselves() const;
  std::vector<at::Tensor> product() const;

  const BatchPlan& plan_;
  const Model& model_;
  Optimizer& optimizer_;
  HookedRun& run_;
  int64_t updates_;
  std::vector<at::Tensor> weights_;  // the model's
  std::vector<Chain> chains_;
};

}  // namespace basin
