#include "trainers/evaluation.h"

#include "core/error.h"
#include "data/network_inputs.h"
#include "models/running_statistics.h"

namespace basin {
namespace {

/// The examples of this rank's micro-batches.
Share examples_of_rank(const EvaluationSetup& setup, const Split& split) {
  const int64_t n = split.size();
  const Share pieces = setup.ranks.share((n + setup.micro_batch - 1) / setup.micro_batch);
  return {std::min(n, pieces.first * setup.micro_batch), std::min(n, pieces.last * setup.micro_batch)};
}

template <class F>
void for_each_micro_batch(const EvaluationSetup& setup, const Split& split, F&& visit) {
  const Share mine = examples_of_rank(setup, split);
  for (int64_t first = mine.first; first < mine.last; first += setup.micro_batch) {
    const at::Tensor index = at::arange(first, std::min(first + setup.micro_batch, split.size()), at::kLong);
    const at::Tensor labels = split.labels.index_select(0, index.to(split.labels.device())).to(setup.device);
    visit(network_inputs(setup.data, split, index, setup.dtype, setup.device), labels);
  }
}

at::Tensor flipped_logits(Model& model, const at::Tensor& inputs) {
  return (model.forward(inputs) + model.forward(inputs.flip(3))) / 2;
}

at::Tensor logits_of(Model& model, const at::Tensor& inputs, Views views) {
  if (views == Views::one) return model.forward(inputs);
  at::Tensor centred = flipped_logits(model, inputs);
  if (views == Views::flip) return centred;
  const at::Tensor padded = at::reflection_pad2d(inputs, {1, 1, 1, 1});
  const auto corner = [&](int64_t from) {
    return padded.narrow(2, from, inputs.size(2)).narrow(3, from, inputs.size(3));
  };
  return centred / 2 + (flipped_logits(model, corner(0)) + flipped_logits(model, corner(2))) / 4;
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

/// Every rank's part, in its place.
template <class T>
void put_together(std::vector<T>& mine, const EvaluationSetup& setup, const Split& split) {
  if (setup.ranks.is_alone()) return;
  const Share examples = examples_of_rank(setup, split);
  if (!setup.ranks.any(!mine.empty())) return;  // no split of this kind has them
  std::vector<T> whole(static_cast<size_t>(split.size()));
  std::copy(mine.begin(), mine.end(), whole.begin() + examples.first);
  setup.ranks.put_together(at::from_blob(whole.data(), {split.size()}, c10::CppTypeToScalarType<T>::value));
  mine = std::move(whole);
}

}  // namespace

Views views_named(const std::string& name, const Split& split) {
  if (name == "none") return Views::one;
  if (!split.has_pictures())
    throw ConfigError(
        fmt::format("test_time_augmentation = \"{}\" is for pictures; the inputs are numbers", name));
  if (name == "flip") return Views::flip;
  if (split.inputs.size(2) < 2 || split.inputs.size(3) < 2) {
    throw ConfigError(fmt::format("test_time_augmentation = \"{}\" can't shift images of {} x {}", name,
                                  split.inputs.size(2), split.inputs.size(3)));
  }
  return Views::flip_shift;
}

int64_t passes_of_views(const std::string& name) { return name == "none" ? 0 : name == "flip" ? 2 : 6; }

SplitScore evaluate(Model& model, const EvaluationSetup& setup, const Split& split,
                    ExampleOutcomes* outcomes) {
  if (split.size() == 0) return {};
  const at::NoGradGuard no_grad;
  const bool was_training = model.is_training();
  model.eval();
  model.set_norm_mode(NormMode::running);
  const auto options = at::TensorOptions(setup.device);
  at::Tensor loss_sum = at::zeros({}, options.dtype(at::kDouble)),
             correct = at::zeros({}, options.dtype(at::kDouble));
  for_each_micro_batch(setup, split, [&](const at::Tensor& inputs, const at::Tensor& labels) {
    const at::Tensor logits = logits_of(model, inputs, setup.views);
    const at::Tensor losses = example_losses(setup.loss, logits, labels);
    const at::Tensor hits = example_hits(logits, labels);
    loss_sum.add_(losses.sum(at::kDouble));
    correct.add_(hits.sum());
    if (outcomes == nullptr) return;
    append<float>(outcomes->loss, losses.to(at::kCPU, at::kFloat).contiguous());
    if (label_kind(labels) != LabelKind::classes) return;
    append<uint8_t>(outcomes->correct, hits.to(at::kCPU, at::kByte).contiguous());
    append<float>(outcomes->margin, margins(logits, labels));
    if (logits.size(1) <= kMostClassesPredicted)
      append<uint8_t>(outcomes->predicted, logits.argmax(1).to(at::kCPU, at::kByte).contiguous());
  });
  model.train(was_training);
  setup.ranks.sum(loss_sum);
  setup.ranks.sum(correct);
  if (outcomes != nullptr) {
    put_together(outcomes->loss, setup, split);
    put_together(outcomes->correct, setup, split);
    put_together(outcomes->margin, setup, split);
    put_together(outcomes->predicted, setup, split);
  }
  const auto loss = loss_sum.item<double>();
  if (!std::isfinite(loss)) return {};
  const double n = static_cast<double>(split.size());
  return {loss / n, correct.item<double>() / n};
}

void refresh_running_statistics(Model& model, const EvaluationSetup& setup, int64_t ghost_batch) {
  const Split& split = setup.data.train;
  const auto forward = [&](int64_t first, int64_t count) {
    const at::Tensor index = at::arange(first, first + count, at::kLong);
    model.forward(network_inputs(setup.data, split, index, setup.dtype, setup.device));
  };
  estimate_running_statistics(model, split.size(), forward, setup.micro_batch, ghost_batch, setup.ranks);
}

}  // namespace basin
