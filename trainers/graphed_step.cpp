#include "trainers/graphed_step.h"

namespace basin {
namespace {

// A copy from pinned memory doesn't make the host wait; torch keeps it until it is done.
at::Tensor for_copy_to(at::Device device, const at::Tensor& indices) {
  return device.is_cpu() ? indices : indices.pin_memory();
}

}  // namespace

std::string why_eager(bool wanted, at::DeviceType device, bool own_layers, bool has_dropout) {
  if (device != at::kCUDA) return "no GPU";
  if (!wanted) return "runtime.cuda_graph = false";
  if (!own_layers) return "the network is a script, which may read from the device";
  if (has_dropout) return "dropout masks are drawn on the host";
  return {};
}

GraphedStep::GraphedStep(Step step, at::Device device, std::shared_ptr<StepCapture> capture)
    : step_(std::move(step)), device_(device), capture_(std::move(capture)) {}

void GraphedStep::run(const at::Tensor& indices, int64_t size) {
  if (!capture_) {
    step_(upload(indices), size);
    return;
  }
  Shape& shape = shapes_[{indices.size(1), size}];
  if (!shape.replay && ++shape.seen > kWarmUps && graphs_ < kMostGraphs) capture(shape, indices, size);
  if (shape.replay) {
    shape.indices.copy_(for_copy_to(device_, indices), /*non_blocking=*/true);
    shape.replay();
    return;
  }
  const at::Tensor there = upload(indices);
  capture_->run([&] { step_(there, size); });
}

at::Tensor GraphedStep::upload(const at::Tensor& indices) const {
  return for_copy_to(device_, indices).to(at::TensorOptions(device_), /*non_blocking=*/true);
}

void GraphedStep::capture(Shape& shape, const at::Tensor& indices, int64_t size) {
  shape.indices = at::empty_like(indices, at::TensorOptions(device_));
  // By value: the work outlives this call.
  shape.replay = capture_->capture([step = step_, indices = shape.indices, size] { step(indices, size); });
  ++graphs_;
}

}  // namespace basin
