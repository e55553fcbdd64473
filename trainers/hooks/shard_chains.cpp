#include "trainers/hooks/shard_chains.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>

#include <numeric>

#include "core/error.h"
#include "core/math/share.h"
#include "core/seed.h"
#include "trainers/flat_weights.h"
#include "trainers/hooks/registry.h"
#include "trainers/hooks/weight_average.h"
#include "trainers/tables.h"
#include "trainers/workers/gaussian_product.h"
#include "trainers/workers/whole_batches.h"

namespace basin {
namespace {

constexpr const char* kProduct = "product";  // checkpoint and prefix of scores
constexpr double kSampledShare = 0.25;       // of the updates, the last ones

std::string chain_name(int64_t number, const std::string& what) {
  return fmt::format("shard_{}_{}", number, what);
}

at::Tensor with_samples(const std::vector<at::Tensor>& samples, const at::Tensor& like) {
  return samples.empty() ? at::empty({0, like.numel()}, at::kDouble) : at::stack(samples);
}

}  // namespace

std::vector<int64_t> ShardChains::examples_of(int64_t seed, int64_t n, int64_t shards, int64_t number) {
  ExampleStream partition(derive_seed(static_cast<uint64_t>(seed), "shards"), n);
  const Share own = share_of(n, number, shards);
  return partition.slice(own.first, own.count(), false).examples;
}

ExampleStream ShardChains::stream_of(int64_t seed, int64_t number, size_t examples) {
  return {derive_seed(static_cast<uint64_t>(seed), "shard-order", static_cast<uint64_t>(number)),
          static_cast<int64_t>(examples)};
}

void bind_options(OptionTable& table, ShardOptions& options) {
  table.group("parallel", [&](OptionTable& t) {
    t.add("shards", options.shards, at_least(0),
          "chains on as many parts of the training set, whose weights are combined; 0: one run on all of it")
        .quiet_default();
  });
}

void ShardChains::check(const Options& options, const HookCheck& run) {
  if (options.shards == 0) return;
  const auto refuse = [](const std::string& what) {
    throw ConfigError(fmt::format("parallel.shards and {} exclude each other", what));
  };
  if (run.plan.stale) refuse("parallel.mode = \"ssp\"");
  if (run.gradients_elsewhere) refuse("an optimiser whose gradients are of other weights");
  if (run.train.branch.exists()) refuse("branch.from");
  if (run.plan.random_weights) refuse("noise.batch, whose batches are counted on the whole set,");
  if (run.train.protocol == "B" && run.train.duplicates == "weighted" && !run.has_batch_statistics)
    refuse("protocol = \"B\" with duplicates = \"weighted\", whose gradients are counted on the whole set,");
  refuse_divided_batches(run, "parallel.shards");
}

HookCost ShardChains::cost(const Options& options) {
  if (options.shards == 0) return {};
  return {.evaluations = 1, .test_passes = options.shards, .checkpoints = {kProduct}};
}

UpdatesNeeded ShardChains::updates_needed(const Options& options) {
  return {options.shards, "parallel.shards", "some chains would stay where they begin"};
}

std::unique_ptr<UpdateHook> ShardChains::make(const Options& options, const HookSetup& setup) {
  if (options.shards == 0) return nullptr;
  return std::make_unique<ShardChains>(options.shards, setup);
}

ShardChains::ShardChains(int64_t shards, const HookSetup& setup)
    : plan_(setup.plan),
      model_(setup.model),
      optimizer_(setup.optimizer),
      run_(setup.run),
      updates_(setup.updates) {
  const std::vector<ParameterInfo> parameters = setup.model.parameter_table();
  for (const ParameterInfo& parameter : parameters) weights_.push_back(parameter.tensor);
  const int64_t n = setup.data.train.size(), seed = setup.train.seed;
  if (n < shards) throw ConfigError(fmt::format("parallel.shards = {} of {} training examples", shards, n));
  for (int64_t number = 0; number < shards; ++number) {
    std::vector<int64_t> examples = examples_of(seed, n, shards, number);
    ExampleStream stream = stream_of(seed, number, examples.size());
    chains_.push_back({std::move(examples),
                       std::move(stream),
                       WeightCopy(parameters, "chain's weights"),
                       optimizer_.state(),
                       {}});
  }
}

void ShardChains::before_gradient(OngoingUpdate& update) {
  Chain& chain = chain_of(update.number);
  const int64_t start = step_of(update.number) * update.batch_size;
  Batch batch = chain.stream.slice(start, update.batch_size, plan_.merge_duplicates);
  for (int64_t& example : batch.examples) example = chain.examples[static_cast<size_t>(example)];
  for (int64_t& position : batch.positions)
    position += update.start - start;  // of the run: crops are drawn by it
  update.groups = {std::move(batch)};
  chain.weights.put_back();
  optimizer_.load_state(chain.optimizer);
}

void ShardChains::after_update(int64_t update) {
  Chain& chain = chain_of(update);
  chain.weights.approach(1);
  chain.optimizer = optimizer_.state();
  if (takes_sample(update)) chain.samples.push_back(flat_on_host(weights_).to(at::kDouble));
  put_mean();
}

// The last of a chain's steps, and kSamples or fewer before it in its last quarter, evenly.
bool ShardChains::takes_sample(int64_t update) const {
  const int64_t steps = (updates_ - (update - 1) % count() + count() - 1) / count(),  // of this chain in all
      sampled = std::max<int64_t>(1, std::llround(kSampledShare * static_cast<double>(steps)));
  const int64_t stride = std::max<int64_t>(1, sampled / kSamples), to_come = steps - 1 - step_of(update);
  return to_come < stride * kSamples && to_come < sampled && to_come % stride == 0;
}

void ShardChains::put_mean() const {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < weights_.size(); ++i) {
    weights_[i].copy_(chains_.front().weights.tensors()[i]);
    for (size_t c = 1; c < chains_.size(); ++c) weights_[i].add_(chains_[c].weights.tensors()[i]);
    weights_[i].div_(static_cast<double>(chains_.size()));
  }
}

double ShardChains::accuracy_by_themselves() const {
  double sum = 0;
  for (const Chain& chain : chains_) {
    const AveragedModel alone(chain.weights.tensors(), model_);
    run_.refresh_statistics();
    sum += run_.score_test(Views::one).accuracy;
  }
  return sum / static_cast<double>(chains_.size());
}

std::vector<at::Tensor> ShardChains::product() const {
  std::vector<at::Tensor> samples;
  for (const Chain& chain : chains_) samples.push_back(at::stack(chain.samples));
  std::vector<at::Tensor> tensors;
  for (const at::Tensor& weight : weights_) tensors.push_back(at::empty_like(weight));
  const at::NoGradGuard no_grad;
  take_from_flat(gaussian_product(samples, kDirections).centre.to(weights_.front().scalar_type()), tensors);
  return tensors;
}

void ShardChains::at_end(Summary& summary, bool diverged) {
  double squares = diverged ? NAN : 0;  // the run has the weights of the chain that diverged
  for (const Chain& chain : chains_) {
    const at::Tensor apart =
        flat_on_host(chain.weights.tensors()).to(at::kDouble) - flat_on_host(weights_).to(at::kDouble);
    squares += apart.square().sum().item<double>();
  }
  summary.emplace_back("shard_distance", std::sqrt(squares / static_cast<double>(chains_.size())));
}

void ShardChains::after_end(Summary& summary, bool diverged) {
  EvaluationRecord scores;
  double alone = NAN;
  if (!diverged && std::ranges::none_of(chains_, [](const Chain& chain) { return chain.samples.empty(); })) {
    alone = accuracy_by_themselves();
    const AveragedModel combined(product(), model_);
    scores = run_.score_other_weights(kProduct);
  }
  summary.emplace_back("shard_test_acc", alone);
  summary.emplace_back("product_train_loss", scores.train_loss);
  summary.emplace_back("product_train_acc", scores.train_accuracy);
  summary.emplace_back("product_test_loss", scores.test_loss);
  summary.emplace_back("product_test_acc", scores.test_accuracy);
}

void ShardChains::save(Checkpoint& checkpoint) const {
  for (int64_t c = 0; c < count(); ++c) {
    const Chain& chain = chains_[static_cast<size_t>(c)];
    checkpoint.add_state(chain_name(c, "weights"), chain.weights.state());
    checkpoint.add_state(chain_name(c, "optimizer"), chain.optimizer);
    checkpoint.add_state(chain_name(c, "samples"),
                         {{"samples", with_samples(chain.samples, flat_on_host(weights_))}});
  }
}

void ShardChains::restore(const Checkpoint& checkpoint) {
  for (int64_t c = 0; c < count(); ++c) {
    Chain& chain = chains_[static_cast<size_t>(c)];
    chain.weights.load_state(checkpoint.state(chain_name(c, "weights")));
    chain.optimizer = checkpoint.state(chain_name(c, "optimizer"));
    const NamedTensors& kept = checkpoint.state(chain_name(c, "samples"));
    if (kept.size() != 1 || kept.front().second.dim() != 2 ||
        kept.front().second.size(1) != flat_on_host(weights_).numel())
      throw IoError(
          fmt::format("checkpoint: \"{}\" has no samples of these weights", chain_name(c, "samples")));
    chain.samples = kept.front().second.unbind(0);
  }
}

HookEntry shard_chains_hook() {
  return hook_entry<ShardChains>({
      .name = "shard_chains",
      .help = "Chains on parts of the data that never hear of one another, combined by the mean of their "
              "weights.",
      .on = {"parallel.shards=3"},
      .summary = {column("shard_distance", "1",
                         "root mean square distance of the shards' weights from their mean", "shards"),
                  column("shard_test_acc", "1", "mean test accuracy of the shards' weights by themselves",
                         "shards"),
                  column("product_train_loss", "nat",
                         "training loss at the centre of the product of the shards' Gaussians", "shards"),
                  column("product_train_acc", "1",
                         "training accuracy at the centre of the product of the shards' Gaussians", "shards"),
                  column("product_test_loss", "nat",
                         "test loss at the centre of the product of the shards' Gaussians", "shards"),
                  column("product_test_acc", "1",
                         "test accuracy at the centre of the product of the shards' Gaussians", "shards")},
  });
}

}  // namespace basin
