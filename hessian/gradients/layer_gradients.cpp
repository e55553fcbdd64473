#include "hessian/gradients/layer_gradients.h"

#include <ATen/ATen.h>

#include "hessian/gradients/pieces.h"
#include "hessian/gradients/sequence_gradients.h"
#include "hessian/gradients/unfolded_images.h"

namespace basin {
namespace {

using Moments = ExampleGradients::Moments;

/// |row|^2, without a copy of the squares.
at::Tensor squared_norms_of(const at::Tensor& rows) { return at::linalg_vector_norm(rows, 2, {1}).square_(); }

/// The moments of the rows of g, [m, parameters].
Moments moments_of(const at::Tensor& g, bool squares) {
  return {squared_norms_of(g), g.sum(0), squares ? g.square().sum(0) : at::Tensor()};
}

at::Tensor products_of(const at::Tensor& g, const at::Tensor& a, const at::Tensor& b) {
  if (!b.defined()) return g.mv(a);
  return at::addcmul(a, g, b).mul_(g).sum(1);
}

/// g itself, [m, ...].
class PlainGradients final : public ExampleGradients {
 public:
  PlainGradients(at::Tensor g, at::IntArrayRef sizes) : g_(std::move(g)), sizes_(sizes.vec()) {}

  Moments moments(bool squares) const override {
    Moments found = moments_of(g_, squares);
    found.sum = found.sum.view(sizes_);
    if (squares) found.sum_of_squares = found.sum_of_squares.view(sizes_);
    return found;
  }
  at::Tensor products(const at::Tensor& a, const at::Tensor& b) const override {
    return products_of(g_, a.flatten(), b.defined() ? b.flatten() : b);
  }
  at::Tensor formed() const override {
    std::vector<int64_t> sizes{g_.size(0)};
    sizes.insert(sizes.end(), sizes_.begin(), sizes_.end());
    return g_.view(sizes);
  }

 private:
  at::Tensor g_;
  std::vector<int64_t> sizes_;
};

/// g_i = d_i x_i' with d [m, out] and x [m, in].
class OuterGradients final : public ExampleGradients {
 public:
  OuterGradients(at::Tensor d, at::Tensor x) : d_(std::move(d)), x_(std::move(x)) {}

  Moments moments(bool squares) const override {
    return {squared_norms_of(d_).mul_(squared_norms_of(x_)), d_.t().mm(x_),
            squares ? d_.square().t().mm(x_.square()) : at::Tensor()};
  }
  at::Tensor products(const at::Tensor& a, const at::Tensor& b) const override {
    at::Tensor sum = x_.mm(a.t()).mul_(d_).sum(1);
    if (b.defined()) sum += x_.square().mm(b.t()).mul_(d_.square()).sum(1);
    return sum;
  }
  at::Tensor formed() const override { return d_.unsqueeze(2) * x_.unsqueeze(1); }

 private:
  at::Tensor d_, x_;
};

class ConvolutionGradients final : public ExampleGradients {
 public:
  ConvolutionGradients(const LayerCall& call, at::Tensor delta) : call_(call), delta_(std::move(delta)) {}

  Moments moments(bool squares) const override {
    const UnfoldedImages images(call_, delta_);
    const auto rows = [&] { return at::zeros({images.rows(), weights_of_row(images)}, delta_.options()); };
    Moments all{at::zeros({delta_.size(0)}, delta_.options()), rows(), squares ? rows() : at::Tensor()};
    const bool positions = !squares && fewer_by_positions(images);
    const int64_t numbers = positions ? 2 * images.positions() * images.positions() : weights_of_row(images);
    images.for_each_piece(numbers, [&](int64_t first, const Piece& piece) {
      const at::Tensor norms = all.squared_norms.narrow(0, first, piece.outputs.size(0));
      if (positions) {
        add_by_positions(piece, norms, all.sum);
      } else {
        add_one_by_one(piece, norms, all);
      }
    });
    all.sum = images.as_weight(all.sum);
    if (squares) all.sum_of_squares = images.as_weight(all.sum_of_squares);
    return all;
  }

  at::Tensor products(const at::Tensor& a, const at::Tensor& b) const override {
    if (!b.defined()) {
      const at::Tensor along =
          at::conv2d(call_.x, a, {}, {call_.stride, call_.stride}, {call_.padding, call_.padding});
      return along.mul_(delta_).sum({1, 2, 3});
    }
    const UnfoldedImages images(call_, delta_);
    const at::Tensor a_rows = images.by_row(a), b_rows = images.by_row(b);
    at::Tensor sums = at::zeros({delta_.size(0)}, delta_.options());
    images.for_each_piece(weights_of_row(images), [&](int64_t first, const Piece& piece) {
      const at::Tensor some = sums.narrow(0, first, piece.outputs.size(0));
      for (int64_t k = 0; k < images.rows(); ++k)
        some.add_(products_of(of_row(piece, k), a_rows[k], b_rows[k]));
    });
    return sums;
  }

  at::Tensor formed() const override {
    const UnfoldedImages images(call_, delta_);
    std::vector<at::Tensor> found;
    images.for_each_piece(images.rows() * weights_of_row(images), [&](int64_t, const Piece& piece) {
      std::vector<at::Tensor> rows;
      for (int64_t k = 0; k < images.rows(); ++k) rows.push_back(of_row(piece, k));
      for (const at::Tensor& image : at::stack(rows, 1).unbind()) found.push_back(images.as_weight(image));
    });
    return at::stack(found);
  }

 private:
  using Piece = UnfoldedImages::Piece;

  static int64_t weights_of_row(const UnfoldedImages& images) { return images.channels() * images.run(); }

  /// Whether products of positions are less work. A number of a gradient that is formed is written once and
  /// read three times, which takes about as long as so many multiplications.
  static bool fewer_by_positions(const UnfoldedImages& images) {
    constexpr int64_t kWalks = 16;
    const int64_t p = images.positions(), patch = images.rows() * images.run();
    return p * p * (patch + images.channels()) < kWalks * patch * images.channels();
  }

  /// Each image's gradient by row k of the weights, [images, Q O]: of the two ways round the one that is fast
  /// also where patches have few numbers, as those of three colours.
  static at::Tensor of_row(const Piece& piece, int64_t k) {
    return at::bmm(piece.patches[k].transpose(1, 2), piece.outputs).flatten(1);
  }

  static void add_one_by_one(const Piece& piece, const at::Tensor& norms, const Moments& all) {
    const bool squares = all.sum_of_squares.defined();
    for (int64_t k = 0; k < all.sum.size(0); ++k) {
      const Moments found = moments_of(of_row(piece, k), squares);
      norms.add_(found.squared_norms);
      all.sum[k].add_(found.sum);
      if (squares) all.sum_of_squares[k].add_(found.sum_of_squares);
    }
  }

  static void add_by_positions(const Piece& piece, const at::Tensor& norms, const at::Tensor& sum) {
    const at::Tensor& d = piece.outputs;
    at::Tensor products;
    for (int64_t k = 0; k < sum.size(0); ++k) {
      const at::Tensor& u = piece.patches[k];
      products = k == 0 ? at::bmm(u, u.transpose(1, 2)) : products.baddbmm_(u, u.transpose(1, 2));
      sum[k].view({-1, d.size(2)}).add_(u.flatten(0, 1).t().mm(d.flatten(0, 1)));
    }
    norms.add_(products.mul_(at::bmm(d, d.transpose(1, 2))).sum({1, 2}));
  }

  LayerCall call_;
  at::Tensor delta_;
};

/// Summed over positions: [m, C, ...] or [m, ..., C] -> [m, C].
at::Tensor by_channel(const at::Tensor& values, bool channels_last) {
  if (values.dim() == 2) return values;
  return channels_last ? values.flatten(1, -2).sum(1) : values.flatten(2).sum(2);
}

at::Tensor scaling_gradients(const LayerCall& call, const at::Tensor& delta) {
  const at::Tensor x = call.x.detach();
  std::vector<at::Tensor> found;
  for_each_piece(delta.size(0), delta.numel() / delta.size(0), [&](int64_t first, int64_t count) {
    found.push_back(by_channel(call.factor(x.narrow(0, first, count)) * delta.narrow(0, first, count),
                               call.channels_last));
  });
  return at::cat(found);
}

bool is_trained(const at::Tensor& parameter) { return parameter.defined() && parameter.requires_grad(); }

std::unique_ptr<ExampleGradients> weight_gradients(const LayerCall& call, const at::Tensor& delta) {
  switch (call.kind) {
    case LayerCall::Kind::convolution:
      return std::make_unique<ConvolutionGradients>(call, delta);
    case LayerCall::Kind::linear:
      if (call.x.dim() == 3) return sequence_gradients(delta, call.x.detach());
      return std::make_unique<OuterGradients>(delta, call.x.detach());
    case LayerCall::Kind::embedding:
      return embedding_gradients(delta, call.x, call.weight.size(0));
    default:
      return std::make_unique<PlainGradients>(scaling_gradients(call, delta), call.weight.sizes());
  }
}

}  // namespace

std::unique_ptr<ExampleGradients> plain_gradients(const at::Tensor& g, at::IntArrayRef sizes) {
  return std::make_unique<PlainGradients>(g.reshape({g.size(0), -1}), sizes);
}

std::vector<ParameterGradients> gradients_of(const LayerCall& call, const at::Tensor& delta) {
  std::vector<ParameterGradients> found;
  if (is_trained(call.weight)) found.push_back({call.weight, weight_gradients(call, delta)});
  if (is_trained(call.bias)) {
    found.push_back({call.bias, std::make_unique<PlainGradients>(by_channel(delta, call.channels_last),
                                                                 call.bias.sizes())});
  }
  return found;
}

}  // namespace basin
