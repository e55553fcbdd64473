#include "hessian/objective.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/error.h"

namespace basin {

Objective::Objective(std::shared_ptr<Model> model, LossKind loss, at::Tensor inputs, at::Tensor labels,
                     int64_t micro_batch, int64_t graph_memory, bool fold_norm)
    : model_(std::move(model)),
      loss_(loss),
      micro_batch_(micro_batch),
      graph_memory_(graph_memory),
      vector_(model_->parameter_table()) {
  if (micro_batch < 1)
    throw ConfigError(fmt::format("micro_batch = {} violates micro_batch >= 1", micro_batch));
  if (labels.size(0) < 1 || inputs.size(0) != labels.size(0)) {
    throw DataError(
        fmt::format("an objective needs as many labels as inputs and at least one; got {} inputs, {} labels",
                    inputs.size(0), labels.size(0)));
  }
  inputs_ = inputs.is_floating_point() ? inputs.to(device(), dtype()) : inputs.to(device());
  labels_ = labels.is_floating_point() ? labels.to(device()) : labels.to(device(), at::kLong);
  model_->eval();
  model_->set_norm_mode(fold_norm ? NormMode::folded : NormMode::running);
}

void Objective::share_over(const RankGroup& ranks) {
  ranks_ = &ranks;
  micro_batch_ = ranks.even_piece(examples(), micro_batch_);
}

bool Objective::answers(Answer answer) const { return answer != Answer::layers || model_->has_own_layers(); }

std::unique_ptr<Problem> Objective::part(const at::Tensor& index) const {
  auto part = std::make_unique<Objective>(*this);
  const at::Tensor on_device = index.to(device());
  part->inputs_ = inputs_.index_select(0, on_device);
  part->labels_ = labels_.index_select(0, on_device);
  part->gradients_done_ = 0;
  return part;
}

Objective Objective::with_logits(LogitMap map) const {
  Objective mapped(*this);
  mapped.logit_map_ = map;
  mapped.gradients_done_ = 0;
  return mapped;
}

at::Tensor Objective::forward(const at::Tensor& inputs) const {
  const at::Tensor logits = model_->forward(inputs);
  return logit_map_ ? logit_map_(logits) : logits;
}

at::Tensor Objective::logits(int64_t first, int64_t count) {
  return forward(inputs_.narrow(0, first, count));
}

at::Tensor Objective::losses(const at::Tensor& logits, int64_t first, int64_t count) const {
  return example_losses(loss_, logits, labels_.narrow(0, first, count));
}

double Objective::loss() {
  at::NoGradGuard no_grad;
  double sum = 0;
  const Share here = micro_batches_here();
  for (int64_t k = here.first; k < here.last; ++k) {
    const int64_t first = k * micro_batch_, count = count_of(k);
    sum += losses(logits(first, count), first, count).sum(at::kDouble).item<double>();
  }
  return mean_over_ranks(sum);
}

double Objective::mean_over_ranks(double sum) const {
  return ranks_->sum(sum) / static_cast<double>(examples());
}

double Objective::accuracy() {
  at::NoGradGuard no_grad;
  double hits = 0;
  const Share here = micro_batches_here();
  for (int64_t k = here.first; k < here.last; ++k) {
    const int64_t first = k * micro_batch_, count = count_of(k);
    hits += example_hits(logits(first, count), labels_.narrow(0, first, count)).sum().item<double>();
  }
  return mean_over_ranks(hits);
}

at::Tensor Objective::add_gradient(const at::Tensor& inputs, const at::Tensor& labels, double weight,
                                   at::Tensor sum, double* loss) {
  at::AutoGradMode record(true);
  const at::Tensor losses = example_losses(loss_, forward(inputs), labels);
  if (loss) *loss += losses.detach().sum(at::kDouble).item<double>() * weight;
  const auto gradients =
      torch::autograd::grad({losses.sum() * weight}, vector_.tensors(), {}, /*retain_graph=*/false,
                            /*create_graph=*/false, /*allow_unused=*/true);
  const at::Tensor flat = vector_.flatten(gradients);
  return sum.defined() ? sum.add_(flat) : flat;
}

at::Tensor Objective::gradient(double* loss) {
  if (loss) *loss = 0;
  const double weight = 1.0 / static_cast<double>(examples());
  at::Tensor sum;
  const Share here = micro_batches_here();
  for (int64_t k = here.first; k < here.last; ++k) {
    const int64_t first = k * micro_batch_, count = count_of(k);
    sum = add_gradient(inputs_.narrow(0, first, count), labels_.narrow(0, first, count), weight, sum, loss);
  }
  ++gradients_done_;
  return gradient_over_ranks(std::move(sum), loss);
}

// A rank without a micro-batch has no sum of its own.
at::Tensor Objective::gradient_over_ranks(at::Tensor sum, double* loss) const {
  if (ranks_->is_alone()) return sum;
  if (!sum.defined()) sum = at::zeros({vector_.size()}, at::TensorOptions(dtype()).device(device()));
  ranks_->sum(sum);
  if (loss) *loss = mean_over_ranks(*loss) * static_cast<double>(examples());
  return sum;
}

at::Tensor Objective::gradient_over(const at::Tensor& index) {
  const double weight = 1.0 / static_cast<double>(index.size(0));
  const at::Tensor on_device = index.to(device());
  at::Tensor sum;
  const std::vector<at::Tensor> pieces = on_device.split(micro_batch_);
  const Share here = ranks_->share(static_cast<int64_t>(pieces.size()));
  for (int64_t k = here.first; k < here.last; ++k) {
    const at::Tensor& piece = pieces[static_cast<size_t>(k)];
    sum = add_gradient(inputs_.index_select(0, piece), labels_.index_select(0, piece), weight, sum, nullptr);
  }
  return gradient_over_ranks(std::move(sum), nullptr);
}

}  // namespace basin
