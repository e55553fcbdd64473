#include "runs/surfaces/subject.h"

#include "core/error.h"
#include "core/seed.h"
#include "core/toml_file.h"
#include "data/class_order.h"
#include "data/load.h"
#include "data/network_inputs.h"
#include "runs/parts.h"
#include "runs/probe_settings.h"
#include "trainers/batch_plan.h"
#include "trainers/data_identity.h"
#include "trainers/trainer.h"

namespace basin {
namespace {

/// Examples of a split as the network sees them.
struct ExampleSet {
  std::unique_ptr<Objective> objective;
  at::Tensor labels;
  std::string hash;
  LabelledSet labelled() const { return {objective.get(), labels}; }
};

ExampleSet example_set(const std::shared_ptr<Model>& model, LossKind loss, const Dataset& data,
                       const Split& split, int64_t count, int64_t micro_batch) {
  if (split.size() == 0) return {};
  const at::Tensor index = hashed_subset(split, count), weights = model->parameter_table().front().tensor;
  const at::Tensor labels = split.labels.index_select(0, index).to(weights.device());
  const at::Tensor inputs = network_inputs(data, split, index, weights.scalar_type(), weights.device());
  return {std::make_unique<Objective>(model, loss, inputs, labels, micro_batch), labels,
          subset_hash(split, index)};
}

}  // namespace

void bind_options(OptionTable& table, LandscapeOptions& options) {
  table.add("subset", options.subset, at_least(0),
            "number of training examples, chosen by image hash; 0: all");
  table.add("test_subset", options.test_subset, at_least(0), "number of test examples, likewise; 0: all");
  table.add("micro_batch", options.micro_batch, at_least(1),
            "examples per pass; affects memory, not results");
  table.add("dtype", options.dtype, one_of({"float32", "float64"}), "floating-point type of the networks");
  table.add("bn", options.bn, one_of({"reset", "interpolate", "frozen"}),
            "running statistics at a point: estimated anew there, interpolated like the weights, or the "
            "first checkpoint's");
  table.add("seed", options.seed, at_least(0), "seed of everything random");
}

LandscapeSubject::LandscapeSubject(std::vector<std::string> files, const LandscapeOptions& options,
                                   at::Device device)
    : files_(std::move(files)), options_(options) {
  for (const std::string& file : files_) checkpoints_.push_back(read_checkpoint(file));
  run_ = run_options_from(parse_toml(checkpoints_.at(0).config, "config of " + files_[0]), {});
  const Dataset data = load_dataset(run_.data);
  for (size_t i = 0; i < count(); ++i)
    check_same_data(files_[i], checkpoints_[i].data, data_attributes(data));

  model_ = build_model(run_, data, scalar_type(options_.dtype), device);
  restore_model(*model_, checkpoints_[0]);
  const LossKind loss = loss_kind(run_.train.loss);
  ExampleSet train = example_set(model_, loss, data, data.train, options_.subset, options_.micro_batch),
             test = example_set(model_, loss, data, data.test, options_.test_subset, options_.micro_batch);
  ghost_batch_ = plan_batches(run_.train, run_.data, model_->has_dropout(), model_->has_batch_statistics(),
                              optimizer_traits(run_).overlap)
                     .ghost_batch;
  if (model_->has_batch_statistics() && statistics_mode(options_.bn) == StatisticsMode::reset)
    refuse_order_by_class(data, ghost_batch_);
  evaluator_ = std::make_unique<PointEvaluator>(
      train.labelled(), test.labelled(), PointEvaluator::Setup{statistics_mode(options_.bn), ghost_batch_});
  train_ = std::move(train.objective);
  test_ = std::move(test.objective);
  train_hash_ = train.hash;
  test_hash_ = test.hash;
  for (size_t i = 0; i < count(); ++i) state(i);  // refuses other networks now
}

at::Tensor LandscapeSubject::state(size_t i) const { return states().of(checkpoint(i), file(i)); }

std::string LandscapeSubject::label(size_t i) const {
  return checkpoint(i).run_id + "/" + checkpoint(i).label;
}

double LandscapeSubject::loss(const at::Tensor& state) {
  evaluator_->place(state);
  return train_->loss();
}

uint64_t LandscapeSubject::seed(const std::string& stream, uint64_t index) const {
  return derive_seed(static_cast<uint64_t>(options_.seed), stream, index);
}

h5::Attributes LandscapeSubject::recipe() const {
  std::vector<std::string> names, hashes;
  for (size_t i = 0; i < count(); ++i) {
    names.push_back(label(i));
    hashes.push_back(content_hash(checkpoints_[i]));
  }
  const bool has_statistics = model_->has_batch_statistics();
  h5::Attributes recipe = {{"checkpoints", names},
                           {"checkpoints_sha256", hashes},
                           {"loss", run_.train.loss},
                           {"train_examples", train_->examples()},
                           {"train_subset_hash", train_hash_},
                           {"test_examples", test_ ? test_->examples() : int64_t{0}},
                           {"test_subset_hash", test_hash_},
                           {"bn_mode", has_statistics ? options_.bn : std::string("none")},
                           {"dtype", options_.dtype},
                           {"device", std::string(train_->device().is_cuda() ? "cuda" : "cpu")},
                           {"micro_batch", options_.micro_batch},
                           {"seed", options_.seed}};
  if (has_statistics && options_.bn == "reset") recipe.emplace_back("ghost_batch", ghost_batch_);
  return recipe;
}

std::vector<SurfaceColumn> LandscapeSubject::score_columns() const {
  std::vector<SurfaceColumn> columns;
  const auto add = [&](const std::string& set, const std::string& examples) {
    for (SurfaceColumn& column : loss_columns(set, examples, loss_units()))
      columns.push_back(std::move(column));
    columns.push_back(
        {set + "_acc", "1", "share of the " + examples + " classified correctly", "landscape-accuracy", {}});
  };
  add("train", "training examples");
  if (test_) add("test", "test examples");
  return columns;
}

CellState LandscapeSubject::fill(const PointScore& score, double* values) const {
  const auto put = [&](const SetScore& set) {
    *values++ = set.loss;
    *values++ = set.loss_error;
    *values++ = set.accuracy;
  };
  put(score.train);
  if (test_) put(score.test);
  return score.finite ? CellState::ok : CellState::nonfinite;
}

}  // namespace basin
