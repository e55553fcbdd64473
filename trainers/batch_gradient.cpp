#include "trainers/batch_gradient.h"

#include "core/error.h"
#include "data/network_inputs.h"
#include "data/resident.h"
#include "models/layers/autocast.h"

namespace basin {

GradientExecution gradient_execution(bool graphs_wanted, at::Device device, const Model& model) {
  GradientExecution execution;
  execution.gather = !device.is_cpu();
  const std::string why =
      why_eager(graphs_wanted, device.type(), model.has_own_layers(), model.has_dropout());
  if (why.empty()) execution.capture = cuda_capture(device);
  execution.description = why.empty() ? "graph" : "eager: " + why;
  return execution;
}

BatchGradient::BatchGradient(std::shared_ptr<Model> model, const Dataset& data,
                             const DataOptions& augmentation, const TrainOptions& options,
                             const BatchPlan& plan, at::ScalarType dtype, at::Device device,
                             const GradientExecution& execution, const RankGroup& ranks)
    : model_(std::move(model)),
      data_(data),
      loss_(loss_kind(options.loss)),
      label_smoothing_(options.label_smoothing),
      plan_(plan),
      augmentation_(augmentation, static_cast<uint64_t>(options.seed), data.train),
      dtype_(dtype),
      device_(device),
      autocast_(options.autocast == "bfloat16"),
      gather_(execution.gather),
      loss_sum_(at::zeros({}, at::TensorOptions(at::kDouble).device(device))),
      step_([this](const at::Tensor& indices, int64_t size) { accumulate(indices, size); }, device,
            execution.capture),
      capture_(execution.capture),
      ranks_(ranks) {
  if (autocast_ && !model_->has_own_layers())
    throw ConfigError(
        fmt::format("autocast = \"{}\" is for Basin's own networks, not for a file's", options.autocast));
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parameters;
  for (const ParameterInfo& parameter : model_->parameter_table()) parameters.push_back(parameter.tensor);
  if (!ranks_.is_alone()) {
    buckets_.emplace(parameters, ranks_);
    return;
  }
  for (at::Tensor& tensor : parameters) tensor.mutable_grad() = at::zeros_like(tensor);
}

// All at once: CUDA graphs know the addresses.
void BatchGradient::make_room_for_norms(int64_t largest_batch) {
  if (measured_step_) return;  // two hooks may want them
  for (const at::Tensor& gradient : gradients()) sums_.push_back(at::zeros_like(gradient));
  const int64_t rows = plan_.merge_duplicates ? std::min(largest_batch, data_.train.size()) : largest_batch;
  const int64_t micro_batches = (rows + plan_.micro_batch - 1) / plan_.micro_batch;
  squares_ = at::zeros({1 + micro_batches}, loss_sum_.options());
  const auto step = [this](const at::Tensor& indices, int64_t size) { accumulate_measured(indices, size); };
  measured_step_.emplace(step, device_, capture_);
}

double BatchGradient::compute(const std::vector<Batch>& groups, const BatchPlace& place, bool measured) {
  model_->train();
  place_ = place;
  if (model_->has_batch_statistics()) model_->set_norm_mode(NormMode::ghost_batch, plan_.ghost_batch);
  if (!rules_.empty() || plan_.overlap > 0) return mean_of(groups);
  const double loss_sum = measured ? measured_gradient(groups.front()) : group_gradient(groups.front());
  return loss_sum / static_cast<double>(groups.front().size);
}

double BatchGradient::loss(const std::vector<Batch>& groups, const BatchPlace& place) {
  const at::NoGradGuard no_grad;
  model_->train();
  place_ = place;
  if (model_->has_batch_statistics()) model_->set_norm_mode(NormMode::ghost_batch, plan_.ghost_batch);
  double sum = 0;
  int64_t size = 0;
  for (const Batch& group : groups) {
    start_at(group);
    loss_sum_.zero_();
    const std::vector<at::Tensor> micro_batches = indices_of(group).to(device_).split(plan_.micro_batch, 1);
    const Share share = mine(micro_batches);
    for (int64_t k = share.first; k < share.last; ++k) micro_batch_loss(micro_batches, k, group.size);
    ranks_.sum(loss_sum_);
    sum += loss_sum_.item<double>();
    size += group.size;
  }
  return sum / static_cast<double>(size);
}

double BatchGradient::mean_of(const std::vector<Batch>& groups) {
  int64_t size = 0;
  for (const Batch& group : groups) size += group.size;
  double loss_sum = 0;
  std::vector<at::Tensor> means;
  for (const at::Tensor& gradient : gradients()) means.push_back(at::zeros_like(gradient));
  for (const Batch& group : groups) {
    loss_sum += by_rules(group, 0);
    const double share = static_cast<double>(group.size) / static_cast<double>(size);
    for (size_t i = 0; i < means.size(); ++i) means[i].add_(gradients()[i], share);
  }
  last_group_.clear();
  for (size_t i = 0; i < means.size(); ++i) {
    last_group_.push_back(gradients()[i].clone());
    gradients()[i].copy_(means[i]);
  }
  return loss_sum / static_cast<double>(size);
}

// What the rules from `first` on make of the group, each of what those after it do.
double BatchGradient::by_rules(const Batch& group, size_t first) {
  if (first == rules_.size()) return group_gradient(group);
  return rules_[first]->group_gradient([&] { return by_rules(group, first + 1); });
}

// The group's mean gradient into .grad; returns the sum of its losses.
double BatchGradient::group_gradient(const Batch& group) {
  start_at(group);
  step_.run(padded(indices_of(group), group.size), group.size);
  finish_sums();
  return loss_sum_.item<double>();
}

// The same, one micro-batch's part of it after another.
double BatchGradient::measured_gradient(const Batch& group) {
  start_at(group);
  const at::Tensor indices = indices_of(group);
  micro_batches_ = (indices.size(1) + plan_.micro_batch - 1) / plan_.micro_batch;
  TORCH_CHECK(measured_step_, "make_room_for_norms() comes first");
  measured_step_->run(indices, group.size);
  finish_sums();
  if (!ranks_.is_alone()) {
    ranks_.sum(squares_);
    put_gradient_square(gradients(), squares_.select(0, 0));
  }
  return loss_sum_.item<double>();
}

Share BatchGradient::mine(const std::vector<at::Tensor>& micro_batches) const {
  return ranks_.share(static_cast<int64_t>(micro_batches.size()));
}

// Over ranks.
void BatchGradient::finish_sums() {
  if (ranks_.is_alone()) return;
  buckets_->finish();
  ranks_.sum(loss_sum_);
}

MicroBatchNorms BatchGradient::micro_batch_norms() const {
  const at::Tensor squares = squares_.narrow(0, 0, 1 + micro_batches_).to(at::kCPU);
  const double* first = squares.const_data_ptr<double>();
  return {*first, std::vector<double>(first + 1, first + squares.numel())};
}

// What accumulate() knows of the examples: a column each. Rows: index, count, where examples are weighed the bits of their
// weights, and where there is augmentation its draws.
at::Tensor BatchGradient::indices_of(const Batch& group) const {
  const auto row = [](const std::vector<int64_t>& values) {
    return at::tensor(values, at::kLong).unsqueeze(0);
  };
  std::vector<at::Tensor> rows{row(group.examples), row(group.counts)};
  if (weights_)
    rows.push_back(at::tensor(weights_->weights(group, place_), at::kDouble).view(at::kLong).unsqueeze(0));
  if (augmentation_.on()) rows.push_back(augmentation_.draws(group.positions, group.examples));
  return at::cat(rows);
}

// On a GPU merged batches of one size have one shape, and one graph: columns are added that count 0 times, exact zeros in every sum.
// They are of an example of the batch, so that no other's loss can make them NaN.
at::Tensor BatchGradient::padded(const at::Tensor& indices, int64_t size) const {
  const int64_t missing = std::min(size, data_.train.size()) - indices.size(1);
  if (!gather_ || !plan_.merge_duplicates || missing == 0) return indices;
  const at::Tensor more = at::zeros({indices.size(0), missing}, indices.options());
  more[0].fill_(indices[0][0]);
  return at::cat({indices, more}, 1);
}

// Reads weights and `indices` alone, nothing of the host; where there is dropout, its place too, and no graph is captured.
void BatchGradient::accumulate(const at::Tensor& indices, int64_t size) {
  for (const at::Tensor& gradient : gradients()) gradient.zero_();
  loss_sum_.zero_();
  const std::vector<at::Tensor> micro_batches = indices.split(plan_.micro_batch, 1);
  const Share share = mine(micro_batches);
  for (int64_t k = share.first; k < share.last; ++k) {
    const at::Tensor loss = micro_batch_loss(micro_batches, k, size);
    if (buckets_ && !capture_ && k + 1 == share.last) buckets_->arm();
    loss.backward();
  }
}

// Adds in the order of accumulate(), each parameter's parts alone: the same bits.
void BatchGradient::accumulate_measured(const at::Tensor& indices, int64_t size) {
  const std::vector<at::Tensor> parts = gradients();
  for (const at::Tensor& sum : sums_) sum.zero_();
  loss_sum_.zero_();
  if (!ranks_.is_alone()) squares_.zero_();  // other ranks fill the rest
  const std::vector<at::Tensor> micro_batches = indices.split(plan_.micro_batch, 1);
  const Share share = mine(micro_batches);
  for (int64_t k = share.first; k < share.last; ++k) {
    for (const at::Tensor& part : parts) part.zero_();
    micro_batch_loss(micro_batches, k, size).backward();
    put_gradient_square(parts, squares_.select(0, 1 + k));
    for (size_t i = 0; i < parts.size(); ++i) sums_[i].add_(parts[i]);
  }
  if (ranks_.is_alone()) put_gradient_square(sums_, squares_.select(0, 0));
  for (size_t i = 0; i < parts.size(); ++i) parts[i].copy_(sums_[i]);
}

// Rows of a group are successive positions where there is dropout (BatchPlan::merge_duplicates).
void BatchGradient::start_at(const Batch& group) {
  dropout_ = {place_.update, group.positions.front() - place_.start};
}

std::vector<at::Tensor> BatchGradient::gradients() const {
  std::vector<at::Tensor> gradients;
  for (const ParameterInfo& parameter : model_->parameter_table())
    gradients.push_back(parameter.tensor.grad());
  return gradients;
}

// The k-th micro-batch is one of a group of `size` examples.
at::Tensor BatchGradient::micro_batch_loss(const std::vector<at::Tensor>& micro_batches, int64_t k,
                                           int64_t size) {
  const at::Tensor& indices = micro_batches[static_cast<size_t>(k)];
  const int64_t row = k * plan_.micro_batch;
  model_->set_dropout_place({dropout_.update, dropout_.first + row});
  const at::Tensor labels = data_.train.labels.index_select(0, indices[0]), counts = indices[1].to(dtype_);
  const at::Tensor inputs = micro_batch_inputs(indices);
  at::Tensor logits;
  {
    const Autocast autocast(autocast_, device_);
    logits = model_->forward(inputs).to(dtype_);
  }
  const at::Tensor losses = label_smoothing_ > 0 ? smoothed_losses(logits, labels, label_smoothing_)
                                                 : example_losses(loss_, logits, labels);
  const at::Tensor weighted = losses.mul(counts);
  loss_sum_.add_(weighted.detach().sum(at::kDouble));
  if (weights_) return losses.mul(indices[2].view(at::kDouble).to(dtype_)).sum();
  return weighted.sum().div(static_cast<double>(size));
}

at::Tensor BatchGradient::micro_batch_inputs(const at::Tensor& indices) const {
  const at::Tensor index = indices[0];
  at::Tensor inputs = gather_ ? gathered_inputs(data_, data_.train, index, dtype_)
                              : network_inputs(data_, data_.train, index, dtype_, device_);
  if (!augmentation_.on()) return inputs;
  const int64_t first = weights_ ? 3 : 2;
  const at::Tensor draws = indices.narrow(0, first, indices.size(0) - first);
  return gather_ ? augmentation_.apply_by_gather(inputs, draws) : augmentation_.apply(inputs, draws);
}

}  // namespace basin
