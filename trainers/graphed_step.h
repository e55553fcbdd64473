// defines: GraphedStep, a step that is captured once per shape and replayed; StepCapture, what captures.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace basin {

/// What can do work, and keep it to be done again without the host's part: CUDA graphs.
class StepCapture {
 public:
  virtual ~StepCapture() = default;
  /// Does `work` where capture() would.
  virtual void run(const std::function<void()>& work) = 0;
  /// Keeps `work` without doing it; a call of what comes back does it.
  virtual std::function<void()> capture(const std::function<void()>& work) = 0;
};

/// CUDA graphs on a stream of their own, sharing one pool of memory. Work must not read from the device, copy
/// from memory that isn't pinned, nor draw random numbers on the host; a DeviceError names the option that
/// does without graphs.
std::shared_ptr<StepCapture> cuda_capture(at::Device device);

/// Why gradients are computed without graphs; empty: with them.
std::string why_eager(bool wanted, at::DeviceType device, bool own_layers, bool has_dropout);

/// A step done many times in few shapes: a function of one int64 tensor on the device, [rows, n], and of a
/// number. All else that it reads or writes keeps its place in memory; what it writes is read after run().
///
/// A shape that comes up a third time is captured, up to kMostGraphs of them, so odd ones leave room for the rest; until then, and
/// without a StepCapture, the step is called. A capture costs what some steps cost, and each shape's graph some megabytes; activations
/// of all lie in the same memory.
class GraphedStep {
 public:
  using Step = std::function<void(const at::Tensor& indices, int64_t size)>;
  static constexpr int kWarmUps = 2;  // libraries take their workspaces then
  static constexpr int kMostGraphs = 8;

  GraphedStep(Step step, at::Device device, std::shared_ptr<StepCapture> capture);
  /// `indices` on the host.
  void run(const at::Tensor& indices, int64_t size);

 private:
  struct Shape {
    int seen = 0;
    at::Tensor indices;  // where its graph reads them
    std::function<void()> replay;
  };
  at::Tensor upload(const at::Tensor& indices) const;
  void capture(Shape& shape, const at::Tensor& indices, int64_t size);

  Step step_;
  at::Device device_;
  std::shared_ptr<StepCapture> capture_;
  std::map<std::pair<int64_t, int64_t>, Shape> shapes_;  // by n and size
  int graphs_ = 0;
};

}  // namespace basin
