#include "hessian/gradients/sequence_gradients.h"

#include <ATen/ATen.h>

#include "hessian/gradients/pieces.h"

namespace basin {
namespace {

/// What both kinds do with the gradients of some examples, formed.
class FormedInPieces : public ExampleGradients {
 public:
  at::Tensor formed() const override { return some(0, examples()); }
  at::Tensor products(const at::Tensor& a, const at::Tensor& b) const override {
    if (!b.defined()) return linear_products(a);
    at::Tensor sums = at::empty({examples()}, a.options());
    for_each_piece(examples(), a.numel(), [&](int64_t first, int64_t count) {
      const at::Tensor g = some(first, count);
      sums.narrow(0, first, count).copy_(at::addcmul(a, g, b).mul_(g).flatten(1).sum(1));
    });
    return sums;
  }

 protected:
  virtual int64_t examples() const = 0;
  /// [count, ...]
  virtual at::Tensor some(int64_t first, int64_t count) const = 0;
  /// [m]: sum_j a_j g_ij
  virtual at::Tensor linear_products(const at::Tensor& a) const = 0;

  /// [m]: |g_i|^2, and adds the squares to `squares` where it is defined.
  at::Tensor formed_norms(int64_t numbers, const at::Tensor& squares) const {
    std::vector<at::Tensor> norms;
    for_each_piece(examples(), numbers, [&](int64_t first, int64_t count) {
      const at::Tensor squared = some(first, count).square_();
      norms.push_back(squared.flatten(1).sum(1));
      if (squares.defined()) squares.add_(squared.sum(0));
    });
    return at::cat(norms);
  }
};

class SequenceGradients final : public FormedInPieces {
 public:
  SequenceGradients(at::Tensor d, at::Tensor x) : d_(std::move(d)), x_(std::move(x)) {}

  Moments moments(bool squares) const override {
    const int64_t out = d_.size(2), in = x_.size(2);
    Moments found{{}, d_.flatten(0, 1).t().mm(x_.flatten(0, 1)), {}};
    if (squares) found.sum_of_squares = at::zeros({out, in}, d_.options());
    const bool by_positions = !squares && d_.size(1) * (in + out) < in * out;
    found.squared_norms = by_positions ? norms_by_positions() : formed_norms(in * out, found.sum_of_squares);
    return found;
  }

 protected:
  int64_t examples() const override { return d_.size(0); }
  at::Tensor some(int64_t first, int64_t count) const override {
    return at::bmm(d_.narrow(0, first, count).transpose(1, 2), x_.narrow(0, first, count));
  }
  at::Tensor linear_products(const at::Tensor& a) const override {
    return at::matmul(x_, a.t()).mul_(d_).flatten(1).sum(1);
  }

 private:
  at::Tensor norms_by_positions() const {
    std::vector<at::Tensor> norms;
    for_each_piece(examples(), 2 * d_.size(1) * d_.size(1), [&](int64_t first, int64_t count) {
      const at::Tensor d = d_.narrow(0, first, count), x = x_.narrow(0, first, count);
      norms.push_back(at::bmm(d, d.transpose(1, 2)).mul_(at::bmm(x, x.transpose(1, 2))).sum({1, 2}));
    });
    return at::cat(norms);
  }

  at::Tensor d_, x_;
};

class EmbeddingGradients final : public FormedInPieces {
 public:
  EmbeddingGradients(at::Tensor d, at::Tensor x, int64_t count)
      : d_(std::move(d)), x_(std::move(x)), count_(count) {}

  Moments moments(bool squares) const override {
    const int64_t width = d_.size(2);
    Moments found{{}, at::zeros({count_, width}, d_.options()), {}};
    found.sum.index_add_(0, x_.flatten(), d_.flatten(0, 1));
    if (squares) found.sum_of_squares = at::zeros({count_, width}, d_.options());
    found.squared_norms = squares ? formed_norms(count_ * width, found.sum_of_squares) : norms_by_positions();
    return found;
  }

 protected:
  int64_t examples() const override { return d_.size(0); }
  at::Tensor some(int64_t first, int64_t count) const override {
    at::Tensor g = at::zeros({count * count_, d_.size(2)}, d_.options());
    const at::Tensor example = at::arange(count, x_.options()).mul_(count_).unsqueeze(1);
    g.index_add_(0, (x_.narrow(0, first, count) + example).flatten(),
                 d_.narrow(0, first, count).flatten(0, 1));
    return g.view({count, count_, d_.size(2)});
  }
  at::Tensor linear_products(const at::Tensor& a) const override {
    return at::embedding(a, x_).mul_(d_).flatten(1).sum(1);
  }

 private:
  at::Tensor norms_by_positions() const {
    std::vector<at::Tensor> norms;
    for_each_piece(examples(), 2 * d_.size(1) * d_.size(1), [&](int64_t first, int64_t count) {
      const at::Tensor d = d_.narrow(0, first, count), x = x_.narrow(0, first, count);
      const at::Tensor same = x.unsqueeze(1).eq(x.unsqueeze(2));
      norms.push_back(at::bmm(d, d.transpose(1, 2)).mul_(same).sum({1, 2}));
    });
    return at::cat(norms);
  }

  at::Tensor d_, x_;
  int64_t count_;
};

}  // namespace

std::unique_ptr<ExampleGradients> sequence_gradients(const at::Tensor& d, const at::Tensor& x) {
  return std::make_unique<SequenceGradients>(d, x);
}

std::unique_ptr<ExampleGradients> embedding_gradients(const at::Tensor& d, const at::Tensor& x,
                                                      int64_t count) {
  return std::make_unique<EmbeddingGradients>(d, x, count);
}

}  // namespace basin
