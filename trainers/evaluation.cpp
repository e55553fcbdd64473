#include "trainers/evaluation.h"

namespace basin {
namespace {

template <class F>
void for_each_micro_batch(const EvaluationSetup& setup, const Split& split, F&& visit) {
  for (int64_t first = 0; first < split.size(); first += setup.micro_batch) {
    const at::Tensor index = at::arange(first, std::min(first + setup.micro_batch, split.size()), at::kLong);
    const at::Tensor labels = split.labels.index_select(0, index).to(setup.device);
    visit(network_inputs(setup.data, split, index, setup.dtype, setup.device), labels);
  }
}

// Logit of the label minus the largest other logit, [n] float32 on the CPU.
at::Tensor margins(const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor column = labels.unsqueeze(1);
  const at::Tensor own = logits.gather(1, column).squeeze(1);
  const at::Tensor others = logits.scatter(1, column, -std::numeric_limits<double>::infinity());
  return (own - std::get<0>(others.max(1))).to(at::kCPU, at::kFloat).contiguous();
}

template <class T>
void append(std::vector<T>& to, const at::Tensor& from) {
  const T* data = from.const_data_ptr<T>();
  to.insert(to.end(), data, data + from.numel());
}

}  // namespace

SplitScore evaluate(Model& model, const EvaluationSetup& setup, const Split& split,
                    ExampleOutcomes* outcomes) {
  if (split.size() == 0) return {};
  const at::NoGradGuard no_grad;
  const bool was_training = model.is_training();
  model.eval();
  model.set_norm_mode(NormMode::running);
  double loss = 0;
  int64_t correct = 0;
  for_each_micro_batch(setup, split, [&](const at::Tensor& inputs, const at::Tensor& labels) {
    const at::Tensor logits = model.forward(inputs);
    const at::Tensor losses = example_losses(setup.loss, logits, labels);
    const at::Tensor hits = logits.argmax(1).eq(labels);
    loss += losses.sum(at::kDouble).item<double>();
    correct += hits.sum().item<int64_t>();
    if (outcomes == nullptr) return;
    append<uint8_t>(outcomes->correct, hits.to(at::kCPU, at::kByte).contiguous());
    append<float>(outcomes->loss, losses.to(at::kCPU, at::kFloat).contiguous());
    append<float>(outcomes->margin, margins(logits, labels));
  });
  model.train(was_training);
  if (!std::isfinite(loss)) return {};
  const double n = static_cast<double>(split.size());
  return {loss / n, static_cast<double>(correct) / n};
}

void refresh_running_statistics(Model& model, const EvaluationSetup& setup, int64_t ghost_batch) {
  if (!model.has_batch_statistics()) return;
  const at::NoGradGuard no_grad;
  const bool was_training = model.is_training();
  // Ghost batches must not be cut by micro-batches, nor depend on their size.
  EvaluationSetup whole_ghosts = setup;
  whole_ghosts.micro_batch = std::max<int64_t>(1, setup.micro_batch / ghost_batch) * ghost_batch;
  model.eval();
  model.reset_running_statistics();
  model.set_norm_mode(NormMode::accumulate, ghost_batch);
  for_each_micro_batch(whole_ghosts, setup.data.train,
                       [&](const at::Tensor& inputs, const at::Tensor&) { model.forward(inputs); });
  model.set_norm_mode(NormMode::running, ghost_batch);
  model.train(was_training);
}

}  // namespace basin
