#include "optim/matrix/shampoo.h"

#include <ATen/ATen.h>

#include "core/math/tensor_norms.h"
#include "optim/registry.h"

namespace basin {
namespace {

/// [n] along a dimension of a tensor of so many.
at::Tensor along(const at::Tensor& vector, size_t dimension, size_t dimensions) {
  std::vector<int64_t> sizes(dimensions, 1);
  sizes[dimension] = vector.numel();
  return vector.view(sizes);
}

}  // namespace

void bind_options(OptionTable& table, ShampooOptions& options) {
  table.add("momentum", options.momentum, half_open(0, 1), "share of the averaged gradient that is kept");
  table.add("accumulation", options.accumulation, one_of({"sum", "average"}),
            "of the statistics: the paper's sum over all gradients, or a moving average");
  table.add("beta2", options.beta2, half_open(0, 1), "average: share of the statistics that is kept");
  table.add("exponent", options.exponent, between(0, 1),
            "of the inverse roots; 0: 1 over twice the number of dimensions");
  table.add("eps", options.eps, greater_than(0), "added to the eigenvalues of the statistics");
  table.add("precondition_frequency", options.precondition_frequency, at_least(1),
            "updates between inverse roots");
  table.add("max_dimension", options.max_dimension, at_least(1),
            "larger dimensions have the diagonal of their statistic alone");
  bind_decay(table, options);
}

Shampoo::Shampoo(std::vector<ParameterInfo> parameters, const ShampooOptions& options)
    : KroneckerOptimizer(std::move(parameters)), options_(options) {
  treatments_ = treatments(parameters_, decay_rules(options));
  std::vector<Shapes> all;
  for (const ParameterInfo& parameter : parameters_) {
    Shapes shapes;
    for (const int64_t n : sizes_of(parameter.tensor)) {
      if (parameter.tensor.numel() == 0) {
        shapes.emplace_back();
      } else {
        shapes.push_back(n > options.max_dimension ? std::vector<int64_t>{n} : std::vector<int64_t>{n, n});
      }
    }
    all.push_back(std::move(shapes));
  }
  if (options.momentum > 0) add_slot("first_moment");
  add_families("statistic", all, "root", all);
}

void Shampoo::learn(size_t i, const at::Tensor& gradient) {
  const bool sums = options_.accumulation == "sum";
  for (size_t d = 0; d < static_cast<size_t>(gradient.dim()); ++d) {
    at::Tensor& s = statistic(i, d);
    const auto dimension = static_cast<int64_t>(d);
    const at::Tensor now =
        s.dim() == 2 ? gram_along(gradient, dimension) : squares_along(gradient, dimension);
    s.mul_(sums ? 1 : options_.beta2).add_(now, sums ? 1 : 1 - options_.beta2);
  }
}

void Shampoo::take_roots(size_t i) {
  const size_t dimensions = sizes_of(parameters_[i].tensor).size();
  const double p = options_.exponent > 0 ? options_.exponent : 0.5 / static_cast<double>(dimensions);
  const double correction = options_.accumulation == "sum"
                                ? 1
                                : 1 - std::pow(options_.beta2, static_cast<double>(updates_done() + 1));
  const auto inverse_power = [&](const at::Tensor& values) {
    return values.clamp_min(0).div(correction).add_(options_.eps).pow_(-p);  // rounding leads below 0
  };
  for (size_t d = 0; d < dimensions; ++d) {
    const at::Tensor& s = statistic(i, d);
    if (s.dim() == 2) {
      const auto [values, vectors] = symmetric_eigen(s);
      derived(i, d).copy_(at::mm(vectors * inverse_power(values), vectors.t()));
    } else {
      derived(i, d).copy_(inverse_power(s.to(at::kDouble)));
    }
  }
}

at::Tensor Shampoo::preconditioned(size_t i, const at::Tensor& tensor) const {
  at::Tensor x = kronecker_product(factors(i), tensor);
  const auto dimensions = static_cast<size_t>(tensor.dim());
  for (size_t d = 0; d < dimensions; ++d)
    if (derived(i, d).dim() == 1) x = x * along(derived(i, d), d, dimensions);
  return x;
}

void Shampoo::update(TensorLists& lists) {
  StepReport norms;
  for (size_t i = 0; i < lists.weights.size(); ++i) {
    const at::Tensor &w = lists.weights[i], &g = lists.gradients[i];
    TensorSums sums{.weight = squared_norm(w), .gradient = squared_norm(g)};
    if (w.numel() > 0) {
      const double rate = learning_rate() * treatments_[i].rate_factor, keep = options_.momentum;
      const std::vector<int64_t> sizes = sizes_of(w);
      learn(i, g.reshape(sizes));
      if (updates_done() % options_.precondition_frequency == 0) take_roots(i);
      const at::Tensor m = keep > 0 ? slot(0)[i].mul_(keep).add_(g, 1 - keep) : g;
      const at::Tensor direction = preconditioned(i, m.reshape(sizes)).reshape(w.sizes());
      const at::Tensor step = (direction * rate).add_(w, rate * treatments_[i].decay);
      w.sub_(step);
      sums.change = squared_norm(step);
    }
    norms.sums.push_back(sums);
    norms.ratios.push_back(1);
  }
  report(norms);
}

std::vector<at::Tensor> Shampoo::preconditioner(const std::vector<at::Tensor>& /*gradients*/) const {
  if (updates_done() == 0) return no_diagonal();
  std::vector<at::Tensor> p;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const std::vector<int64_t> sizes = sizes_of(parameters_[i].tensor);
    at::Tensor product =
        at::ones(sizes, parameters_[i].tensor.options().dtype(at::kDouble).requires_grad(false));
    for (size_t d = 0; d < sizes.size() && parameters_[i].tensor.numel() > 0; ++d) {
      const at::Tensor& root = derived(i, d);
      const at::Tensor inverse = root.dim() == 2 ? symmetric_eigen(root).first : root.to(at::kDouble);
      product = product / along(inverse, d, sizes.size());
    }
    p.push_back(product.div(treatments_[i].rate_factor).reshape(parameters_[i].tensor.sizes()));
  }
  return p;
}

std::vector<KroneckerFactors> Shampoo::preconditioner_bases() const {
  std::vector<KroneckerFactors> bases;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    KroneckerFactors of_tensor = factors(i);
    for (at::Tensor& factor : of_tensor)
      if (factor.defined()) factor = symmetric_eigen(factor).second;
    if (parameters_[i].tensor.dim() == 0) of_tensor.clear();  // 1 or -1
    bases.push_back(std::move(of_tensor));
  }
  return bases;
}

OptimizerEntry shampoo_entry() {
  return optimizer_entry<Shampoo, ShampooOptions>(
      {.name = "shampoo",
       .label = "Shampoo",
       .help = "Gradients preconditioned by a matrix along each dimension.",
       .memoryless = {"momentum=0"},
       .undecayed = {"accumulation=average"}},
      [](const ShampooOptions& o) {
        return OptimizerTraits{.state_by_weight = false, .momentum = o.momentum};
      });
}

}  // namespace basin
