#include "trainers/batch_gradient.h"

#include "data/augmentation.h"

namespace basin {

BatchGradient::BatchGradient(std::shared_ptr<Model> model, const Dataset& data,
                             const DataOptions& augmentation, LossKind loss, const BatchPlan& plan,
                             uint64_t master_seed, at::ScalarType dtype, at::Device device)
    : model_(std::move(model)),
      data_(data),
      augmentation_(augmentation),
      loss_(loss),
      plan_(plan),
      master_seed_(master_seed),
      dtype_(dtype),
      device_(device) {
  const at::NoGradGuard no_grad;
  for (const ParameterInfo& parameter : model_->parameter_table()) {
    at::Tensor tensor = parameter.tensor;
    tensor.mutable_grad() = at::zeros_like(tensor);
  }
}

double BatchGradient::compute(const Batch& batch) {
  for (const ParameterInfo& parameter : model_->parameter_table())
    at::Tensor(parameter.tensor.grad()).zero_();
  model_->train();
  if (model_->has_batch_statistics()) model_->set_norm_mode(NormMode::ghost_batch, plan_.ghost_batch);

  const int64_t n = static_cast<int64_t>(batch.examples.size());
  at::Tensor loss_sum = at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device_));
  for (int64_t first = 0; first < n; first += plan_.micro_batch) {
    const int64_t last = std::min(first + plan_.micro_batch, n);
    micro_batch_loss(batch, first, last, loss_sum).backward();
  }
  return loss_sum.item<double>() / static_cast<double>(batch.size);
}

at::Tensor BatchGradient::micro_batch_loss(const Batch& batch, int64_t first, int64_t last,
                                           at::Tensor& loss_sum) {
  // The batch's index lists outlive the tensors that borrow them.
  const at::Tensor index =
      at::from_blob(const_cast<int64_t*>(batch.examples.data() + first), {last - first}, at::kLong);
  const at::Tensor counts =
      at::from_blob(const_cast<int64_t*>(batch.counts.data() + first), {last - first}, at::kLong)
          .to(at::TensorOptions().dtype(dtype_).device(device_));
  const at::Tensor labels = data_.train.labels.index_select(0, index).to(device_);
  const at::Tensor losses =
      example_losses(loss_, model_->forward(micro_batch_inputs(index, batch, first, last)), labels);
  const at::Tensor weighted = losses.mul(counts);
  loss_sum.add_(weighted.detach().sum(at::kDouble));
  return weighted.sum().div(static_cast<double>(batch.size));
}

at::Tensor BatchGradient::micro_batch_inputs(const at::Tensor& index, const Batch& batch, int64_t first,
                                             int64_t last) const {
  at::Tensor inputs = network_inputs(data_, data_.train, index, dtype_, device_);
  if (augmentation_.augmentation == "none") return inputs;
  const std::vector<int64_t> positions(batch.positions.begin() + first, batch.positions.begin() + last);
  return crop_and_flip(inputs, master_seed_, positions, augmentation_.padding);
}

}  // namespace basin
