#include "models/layers/first_convolution.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/math/parallel_chunks.h"
#include "core/math/wide_registers.h"
#include "models/layers/convolution.h"
#include "models/layers/first_convolution_loops.h"
#include "models/layers/layer_calls.h"
#include "models/layers/layer_map.h"
#include "models/layers/max_pool.h"

namespace basin {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;
constexpr int64_t kImages = 8;  // whose gradients are one summand, whatever the number of threads

/// For `in` channels of images; none where this processor has none.
FirstConvolutionLoops loops(int64_t in, int64_t out) {
  if (!wide::fuses()) return {};
  if (wide::widest() == 512 && out % 16 == 0) return first_convolution_avx512(in);
  if (wide::widest() >= 256 && out % 8 == 0) return first_convolution_avx2(in);
  return {};
}

struct Images {
  at::Tensor x;
  FirstConvolutionShape shape;
  int64_t count, in;

  Images(const at::Tensor& images, int64_t out)
      : x(images.contiguous(kChannelsLast)),
        shape{x.size(2), x.size(3), out},
        count(x.size(0)),
        in(x.size(1)) {}
  const float* image(int64_t i) const {
    return x.const_data_ptr<float>() + i * in * shape.height * shape.width;
  }
  int64_t outputs() const { return shape.height / 2 * (shape.width / 2) * shape.channels; }
  int64_t padded() const { return (shape.height + 2) * (shape.width + 2) * in; }
  at::Tensor empty_outputs(at::ScalarType type) const {
    return at::empty({count, shape.channels, shape.height / 2, shape.width / 2}, x.options().dtype(type),
                     kChannelsLast);
  }
  /// f(chunk, image, numbers to write to) for every image, those of a chunk in their order.
  template <class F>
  void for_each(const F& f) const {
    for_each_chunk((count + kImages - 1) / kImages, count * outputs(), [&](int64_t chunk) {
      std::vector<float> scratch(static_cast<size_t>(padded()));
      for (int64_t i = chunk * kImages; i < std::min((chunk + 1) * kImages, count); ++i)
        f(chunk, i, scratch.data());
    });
  }
};

/// The gradients by w and b from that by y: linear in h, and w isn't in them.
class FirstConvolutionGradients : public Function<FirstConvolutionGradients> {
 public:
  static variable_list forward(AutogradContext* ctx, const at::Tensor& h, const at::Tensor& x,
                               const at::Tensor& places) {
    ctx->save_for_backward({x, places});
    const Images images(x, places.size(1));
    const at::Tensor by_y = h.contiguous(kChannelsLast);
    const int64_t taps = 9 * images.in, out = images.shape.channels;
    const at::Tensor parts = at::zeros({(images.count + kImages - 1) / kImages, taps + 1, out}, x.options());
    const auto backward = loops(images.in, out).backward;
    images.for_each([&](int64_t chunk, int64_t i, float* padded) {
      float* sums = parts.mutable_data_ptr<float>() + chunk * (taps + 1) * out;
      backward(images.shape, images.image(i), by_y.const_data_ptr<float>() + i * images.outputs(),
               places.const_data_ptr<Place>() + i * images.outputs(), sums, sums + taps * out, padded);
    });
    const at::Tensor sums = parts.sum(0, false, at::kDouble).to(at::kFloat);
    return {sums.narrow(0, 0, taps).view({3, 3, images.in, out}).permute({3, 2, 0, 1}).contiguous(),
            sums[taps].contiguous()};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& along) {
    const variable_list saved = ctx->get_saved_variables();
    return {at_places(convolution(saved[0], along[0], along[1], 1, 1), saved[1]), {}, {}};
  }
};

class FirstLayer : public Function<FirstLayer> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& w,
                            const at::Tensor& b) {
    const Images images(x, w.size(0));
    const at::Tensor y = images.empty_outputs(at::kFloat), places = images.empty_outputs(at::kInt);
    const at::Tensor weights = w.permute({2, 3, 1, 0}).contiguous(), bias = b.contiguous();
    const auto forward = loops(images.in, w.size(0)).forward;
    images.for_each([&](int64_t, int64_t i, float* padded) {
      forward(images.shape, images.image(i), weights.const_data_ptr<float>(), bias.const_data_ptr<float>(),
              y.mutable_data_ptr<float>() + i * images.outputs(),
              places.mutable_data_ptr<Place>() + i * images.outputs(), padded);
    });
    ctx->save_for_backward({images.x, places});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& h) {
    const variable_list saved = ctx->get_saved_variables();
    const variable_list by = FirstConvolutionGradients::apply(h[0], saved[0], saved[1]);
    return {{}, by[0], by[1]};
  }
};

bool is_plain(const at::Tensor& t) { return t.device().is_cpu() && t.scalar_type() == at::kFloat; }

bool fits(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
  if (LayerMap::active() || LayerCalls::active() || at::autocast::is_autocast_enabled(at::kCPU)) return false;
  return b.defined() && is_plain(x) && is_plain(w) && is_plain(b) &&
         !(x.requires_grad() && at::GradMode::is_enabled()) && x.dim() == 4 && x.size(1) <= 4 &&
         x.size(2) % 2 == 0 && x.size(3) % 2 == 0 && w.dim() == 4 && w.size(2) == 3 && w.size(3) == 3 &&
         loops(x.size(1), w.size(0)).forward != nullptr;
}

}  // namespace

at::Tensor rectified_pooled_convolution(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
  return fits(x, w, b) ? FirstLayer::apply(x, w, b) : rectified_max_pool(convolution(x, w, b, 1, 1));
}

}  // namespace basin
