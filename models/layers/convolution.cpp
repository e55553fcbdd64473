#include "models/layers/convolution.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/layers/autocast.h"
#include "models/layers/layer_calls.h"
#include "models/layers/layer_map.h"

namespace basin {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct Gradients {
  at::Tensor x, w, b;
};

Gradients gradients(const at::Tensor& h, const at::Tensor& x, const at::Tensor& w, int64_t stride,
                    int64_t padding, std::array<bool, 3> wanted) {
  const int64_t channels = w.size(0);
  auto [gx, gw, gb] =
      at::convolution_backward(h, x, w, at::IntArrayRef(channels), {stride, stride}, {padding, padding},
                               /*dilation=*/{1, 1}, /*transposed=*/false, /*output_padding=*/{0, 0},
                               /*groups=*/1, wanted);
  return {gx, gw, gb};
}

at::Tensor sum_of(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

void save(AutogradContext* ctx, variable_list tensors, int64_t stride, int64_t padding) {
  ctx->set_materialize_grads(false);
  ctx->save_for_backward(std::move(tensors));
  ctx->saved_data["stride"] = stride;
  ctx->saved_data["padding"] = padding;
}

/// `compact`, whose entries are those that are wanted, by x, w and b; undefined where one was not.
variable_list spread(const std::vector<bool>& wanted, const variable_list& compact) {
  variable_list all(wanted.size());
  size_t next = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) all[i] = compact[next++];
  }
  return all;
}

/// (h, x, w) -> those gradients by x, w and b that are wanted, and no others: a Function's outputs are
/// defined.
class ConvolutionGradients : public Function<ConvolutionGradients> {
 public:
  static variable_list forward(AutogradContext* ctx, const at::Tensor& h, const at::Tensor& x,
                               const at::Tensor& w, int64_t stride, int64_t padding,
                               const std::vector<bool>& wanted) {
    save(ctx, {h, x, w}, stride, padding);
    ctx->saved_data["wanted"] = c10::List<bool>({wanted[0], wanted[1], wanted[2]});
    const Gradients g = gradients(h, x, w, stride, padding, {wanted[0], wanted[1], wanted[2]});
    variable_list found;
    if (wanted[0]) found.push_back(g.x);
    if (wanted[1]) found.push_back(g.w);  // oneDNN's comes with that of b, wanted or not
    if (wanted[2]) found.push_back(g.b);
    return found;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& along) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &h = saved[0], &x = saved[1], &w = saved[2];
    const int64_t stride = ctx->saved_data["stride"].toInt(), padding = ctx->saved_data["padding"].toInt();
    const variable_list directions = spread(ctx->saved_data["wanted"].toBoolList().vec(), along);
    const at::Tensor &u = directions[0], &v = directions[1], &c = directions[2];
    at::Tensor by_h, by_x, by_w;
    if (ctx->needs_input_grad(0)) {
      if (u.defined()) by_h = convolution(u, w, {}, stride, padding);
      if (v.defined()) by_h = sum_of(by_h, convolution(x, v, {}, stride, padding));
      if (c.defined()) by_h = sum_of(by_h, c.view({1, -1, 1, 1}).expand_as(h));
    }
    if (v.defined() && ctx->needs_input_grad(1))
      by_x = gradients(h, x, v, stride, padding, {true, false, false}).x;
    if (u.defined() && ctx->needs_input_grad(2))
      by_w = gradients(h, u, w, stride, padding, {false, true, false}).w;
    return {by_h, by_x, by_w, {}, {}, {}};
  }
};

class Convolution : public Function<Convolution> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& w,
                            const std::optional<at::Tensor>& b, int64_t stride, int64_t padding) {
    save(ctx, {x, w}, stride, padding);
    ctx->saved_data["bias"] = b.has_value();
    return at::conv2d(x, w, b, stride, padding);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& h) {
    if (!h[0].defined()) return variable_list(5);
    const variable_list saved = ctx->get_saved_variables();
    const bool bias = ctx->saved_data["bias"].toBool();
    const std::vector<bool> wanted{ctx->needs_input_grad(0), ctx->needs_input_grad(1),
                                   bias && ctx->needs_input_grad(2)};
    variable_list by_input = spread(
        wanted, ConvolutionGradients::apply(h[0], saved[0], saved[1], ctx->saved_data["stride"].toInt(),
                                            ctx->saved_data["padding"].toInt(), wanted));
    by_input.resize(5);  // none by stride and padding
    return by_input;
  }
};

}  // namespace

at::Tensor convolution(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, int64_t stride,
                       int64_t padding) {
  if (LayerMap* map = LayerMap::active()) {
    const LayerMap::Arguments other = map->next({x, w, b});
    return at::conv2d(other.x, other.weight, other.bias, stride, padding);
  }
  const std::optional<at::Tensor> bias = b.defined() ? std::optional(autocasted(b)) : std::nullopt;
  at::Tensor y = Convolution::apply(autocasted(x), autocasted(w), bias, stride, padding);
  if (LayerCalls* calls = LayerCalls::active())
    calls->add({LayerCall::Kind::convolution, w, b, x, stride, padding}, y);
  return y;
}

}  // namespace basin
