#include "models/layers/max_pool.h"

#include <torch/csrc/autograd/custom_function.h>

#include "models/layers/halving_loops.h"

namespace basin {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

HalvingShape shape_of(const at::Tensor& large) {
  return {large.size(0), large.size(2), large.size(3), large.size(1)};
}

HalvingShape shape_above(const at::Tensor& small) {
  return {small.size(0), 2 * small.size(2), 2 * small.size(3), small.size(1)};
}

at::Tensor images(const HalvingShape& s, int64_t shrink, const at::TensorOptions& options) {
  return at::empty({s.images, s.channels, s.height / shrink, s.width / shrink}, options,
                   at::MemoryFormat::ChannelsLast);
}

class Select;

class Spread : public Function<Spread> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& small, const at::Tensor& places) {
    ctx->save_for_backward({places});
    const at::Tensor y = small.contiguous(at::MemoryFormat::ChannelsLast);
    const HalvingShape shape = shape_above(y);
    const at::Tensor x = images(shape, 1, y.options());
    AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "max_pool", [&] {
      spread(shape, y.const_data_ptr<scalar_t>(), places.const_data_ptr<Place>(),
             x.mutable_data_ptr<scalar_t>());
    });
    return x;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& along);
};

class Select : public Function<Select> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& large, const at::Tensor& places) {
    ctx->save_for_backward({places});
    const at::Tensor x = large.contiguous(at::MemoryFormat::ChannelsLast);
    const HalvingShape shape = shape_of(x);
    const at::Tensor y = images(shape, 2, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "max_pool", [&] {
      select(shape, x.const_data_ptr<scalar_t>(), places.const_data_ptr<Place>(),
             y.mutable_data_ptr<scalar_t>());
    });
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& along) {
    return {Spread::apply(along[0], ctx->get_saved_variables()[0]), {}};
  }
};

variable_list Spread::backward(AutogradContext* ctx, const variable_list& along) {
  return {Select::apply(along[0], ctx->get_saved_variables()[0]), {}};
}

class Halve : public Function<Halve> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& large, bool rectify) {
    const at::Tensor x = large.contiguous(at::MemoryFormat::ChannelsLast);
    const HalvingShape shape = shape_of(x);
    const at::Tensor y = images(shape, 2, x.options()),
                     places = images(shape, 2, x.options().dtype(at::kInt));
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "max_pool", [&] {
      halve(shape, rectify, x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(),
            places.mutable_data_ptr<Place>());
    });
    ctx->save_for_backward({places});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& along) {
    return {Spread::apply(along[0], ctx->get_saved_variables()[0]), {}};
  }
};

bool halves(const at::Tensor& x) {
  return x.device().is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble) &&
         x.size(2) % 2 == 0 && x.size(3) % 2 == 0;
}

}  // namespace

at::Tensor max_pool(const at::Tensor& x, int64_t kernel, int64_t stride, int64_t padding) {
  if (kernel == 2 && stride == 2 && padding == 0 && halves(x)) return Halve::apply(x, false);
  return at::max_pool2d(x, kernel, stride, padding);
}

at::Tensor at_places(const at::Tensor& large, const at::Tensor& places) {
  return Select::apply(large, places);
}

at::Tensor rectified_max_pool(const at::Tensor& x) {
  return halves(x) ? Halve::apply(x, true) : at::relu(at::max_pool2d(x, 2, 2));
}

}  // namespace basin
