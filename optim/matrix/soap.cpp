#include "optim/matrix/soap.h"

#include <ATen/ATen.h>

#include "core/math/tensor_norms.h"
#include "optim/registry.h"

namespace basin {

void bind_options(OptionTable& table, SoapOptions& options) {
  table.add("beta1", options.beta1, half_open(0, 1), "decay of the first moment");
  table.add("beta2", options.beta2, half_open(0, 1), "decay of the second moment and of the statistics");
  table.add("eps", options.eps, at_least(0), "added to the root of the second moment");
  table.add("precondition_frequency", options.precondition_frequency, at_least(1),
            "updates between power iterations of the bases");
  table.add("max_dimension", options.max_dimension, at_least(1), "larger dimensions keep their own basis");
  table.add("precondition_vectors", options.precondition_vectors, anything(),
            "tensors of one dimension have a basis too");
  table.add("skip_first", options.skip_first, anything(),
            "the first update makes the bases and moves no weight, as in the authors' code");
  bind_decay(table, options);
}

Soap::Soap(std::vector<ParameterInfo> parameters, const SoapOptions& options)
    : KroneckerOptimizer(std::move(parameters)), options_(options) {
  treatments_ = treatments(parameters_, decay_rules(options));
  std::vector<Shapes> all;
  for (const ParameterInfo& parameter : parameters_) {
    Shapes shapes;
    const bool has_bases =
        parameter.tensor.numel() > 0 && (parameter.tensor.dim() > 1 || options.precondition_vectors);
    for (const int64_t n : sizes_of(parameter.tensor)) {
      const bool has_one = has_bases && n <= options.max_dimension;
      shapes.push_back(has_one ? std::vector<int64_t>{n, n} : std::vector<int64_t>{});
    }
    all.push_back(std::move(shapes));
  }
  add_slot("first_moment");
  add_slot("second_moment");
  add_families("statistic", all, "basis", all);
}

void Soap::learn(size_t i, const at::Tensor& gradient) {
  for (size_t d = 0; d < static_cast<size_t>(gradient.dim()); ++d) {
    if (statistic(i, d).dim() != 2) continue;
    statistic(i, d)
        .mul_(options_.beta2)
        .add_(gram_along(gradient, static_cast<int64_t>(d)), 1 - options_.beta2);
  }
}

void Soap::begin(size_t i, const at::Tensor& gradient) {
  learn(i, gradient);
  for (size_t d = 0; d < static_cast<size_t>(gradient.dim()); ++d)
    if (statistic(i, d).dim() == 2) derived(i, d).copy_(symmetric_eigen(statistic(i, d)).second);
}

void Soap::refresh(size_t i) {
  const std::vector<int64_t> sizes = sizes_of(parameters_[i].tensor);
  at::Tensor v = slot(1)[i].reshape(sizes);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (statistic(i, d).dim() != 2) continue;
    const at::Tensor q = derived(i, d).to(at::kDouble);
    const at::Tensor product = at::mm(statistic(i, d).to(at::kDouble), q);
    const at::Tensor order =
        at::argsort((q * product).sum(0), /*stable=*/true, /*dim=*/0, /*descending=*/true);
    v = v.index_select(static_cast<int64_t>(d), order);
    derived(i, d).copy_(std::get<0>(at::linalg_qr(product.index_select(1, order))));
  }
  slot(1)[i].copy_(v.reshape(slot(1)[i].sizes()));
}

at::Tensor Soap::denominator(size_t i, int64_t steps) const {
  const double correction = 1 - std::pow(options_.beta2, static_cast<double>(steps));
  return slot(1)[i].sqrt().add_(options_.eps).div_(std::sqrt(correction));
}

at::Tensor Soap::direction(size_t i, const at::Tensor& gradient) {
  at::Tensor &m = slot(0)[i], &v = slot(1)[i];
  const std::vector<int64_t> sizes = sizes_of(gradient);
  const KroneckerFactors bases = factors(i);
  const auto in_basis = [&](const at::Tensor& x) {
    return kronecker_transposed_product(bases, x.reshape(sizes)).reshape(x.sizes());
  };
  const int64_t steps = steps_taken() + 1;
  m.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
  v.mul_(options_.beta2).add_(in_basis(gradient).square(), 1 - options_.beta2);
  const at::Tensor moment = in_basis(m).div(1 - std::pow(options_.beta1, static_cast<double>(steps)));
  const at::Tensor n = moment / denominator(i, steps);
  return kronecker_product(bases, at::where(moment == 0, at::zeros_like(n), n).reshape(sizes))
      .reshape(gradient.sizes());
}

void Soap::update(TensorLists& lists) {
  StepReport norms;
  const bool is_first = updates_done() == 0;
  const bool is_due = steps_taken() > 0 && steps_taken() % options_.precondition_frequency == 0;
  for (size_t i = 0; i < lists.weights.size(); ++i) {
    const at::Tensor &w = lists.weights[i], &g = lists.gradients[i];
    TensorSums sums{.weight = squared_norm(w), .gradient = squared_norm(g)};
    const at::Tensor shaped = g.reshape(sizes_of(g));
    if (is_first) begin(i, shaped);
    if (is_due)
      refresh(i);  // after the update before, so that the bases of a step stay in the state until the next
    if (!is_first || !options_.skip_first) {
      const double rate = learning_rate() * treatments_[i].rate_factor;
      const at::Tensor step = (direction(i, g) * rate).add_(w, rate * treatments_[i].decay);
      w.sub_(step);
      sums.change = squared_norm(step);
    }
    if (!is_first) learn(i, shaped);
    norms.sums.push_back(sums);
    norms.ratios.push_back(1);
  }
  report(norms);
}

std::vector<at::Tensor> Soap::preconditioner(const std::vector<at::Tensor>& /*gradients*/) const {
  if (steps_taken() <= 0) return no_diagonal();
  std::vector<at::Tensor> p;
  for (size_t i = 0; i < parameters_.size(); ++i)
    p.push_back(denominator(i, steps_taken()).to(at::kDouble).div_(treatments_[i].rate_factor));
  return p;
}

std::vector<KroneckerFactors> Soap::preconditioner_bases() const {
  std::vector<KroneckerFactors> bases;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    bases.push_back(factors(i));
    if (parameters_[i].tensor.dim() == 0) bases.back().clear();  // 1 or -1
  }
  return bases;
}

OptimizerEntry soap_entry() {
  return optimizer_entry<Soap, SoapOptions>({.name = "soap",
                                             .label = "SOAP",
                                             .help = "Adam in the eigenbasis of Shampoo's preconditioner.",
                                             .memoryless = {"beta1=0", "weight_decay=0"},
                                             .undecayed = {"weight_decay=0"}},
                                            [](const SoapOptions& o) {
                                              return OptimizerTraits{.squares_in = {"second_moment"},
                                                                     .state_by_weight = false,
                                                                     .magnifies_rounding = true,
                                                                     .momentum = o.beta1};
                                            });
}

}  // namespace basin
