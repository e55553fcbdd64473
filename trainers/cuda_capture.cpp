#include "core/error.h"
#include "trainers/graphed_step.h"

#ifdef BASIN_CUDA

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

namespace basin {
namespace {

class CudaCapture : public StepCapture {
 public:
  explicit CudaCapture(at::Device device)
      : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index())),
        pool_(at::cuda::graph_pool_handle()) {}

  // Warm-ups run on the stream of the capture: libraries keep a workspace for each stream, and autograd runs
  // a backward pass on the streams of its forward pass.
  void run(const std::function<void()>& work) override {
    const c10::cuda::CUDAStream outside = c10::cuda::getCurrentCUDAStream(stream_.device_index());
    let_wait(stream_, outside);
    {
      const c10::cuda::CUDAStreamGuard guard(stream_);
      work();
    }
    let_wait(outside, stream_);
  }

  std::function<void()> capture(const std::function<void()>& work) override {
    const auto graph = std::make_shared<at::cuda::CUDAGraph>();
    try {
      run([&] {
        c10::cuda::device_synchronize();
        graph->capture_begin(pool_);
        work();
        graph->capture_end();
      });
    } catch (const c10::Error& error) {
      throw DeviceError(fmt::format(
          "a batch's gradient can't be captured as a CUDA graph ({}); set runtime.cuda_graph = false",
          error.what_without_backtrace()));
    }
    return [this, graph] { run([&] { graph->replay(); }); };
  }

 private:
  static void let_wait(const c10::cuda::CUDAStream& stream, const c10::cuda::CUDAStream& for_stream) {
    at::cuda::CUDAEvent event;
    event.record(for_stream);
    event.block(stream);
  }

  c10::cuda::CUDAStream stream_;
  at::cuda::MempoolId_t pool_;  // replays follow one another, and nothing in it is read after them
};

}  // namespace

std::shared_ptr<StepCapture> cuda_capture(at::Device device) { return std::make_shared<CudaCapture>(device); }

}  // namespace basin

#else

namespace basin {

std::shared_ptr<StepCapture> cuda_capture(at::Device /*device*/) {
  throw DeviceError("built without CUDA: there are no graphs to capture");
}

}  // namespace basin

#endif
