#include "optim/lbfgs.h"

#include "core/math/share.h"
#include "core/math/tensor_norms.h"
#include "optim/registry.h"

namespace basin {
namespace {

using Vector = std::vector<at::Tensor>;

/// The weights of one process among several, in the order of memory.
at::Tensor part_of(const at::Tensor& tensor, const SharedSums& sums) {
  const Share part = share_of(tensor.numel(), sums.rank, sums.ranks);
  return tensor.as_strided({part.count()}, {1}, tensor.storage_offset() + part.first);
}

void add(Vector& to, const Vector& a, double factor) {
  for (size_t i = 0; i < to.size(); ++i) to[i].add_(a[i], factor);
}

void copy(Vector& to, const Vector& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
}

Vector clones(const Vector& tensors) {
  Vector copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

}  // namespace

void bind_options(OptionTable& table, LbfgsOptions& options) {
  table.add("history", options.history, between(1, 100),
            "number of pairs of a step and a gradient difference kept");
  table.add("overlap", options.overlap, between(0.01, 0.5),
            "share of a batch whose gradient is computed again after the step");
  table.add("min_curvature", options.min_curvature, at_least(0),
            "pairs with y's < min_curvature s's are left out");
  table.add("weight_decay", options.weight_decay, at_least(0),
            "L2 coefficient: gradient + weight_decay * weight");
  bind_exclusion(table, options.exclude_from_decay);
}

Lbfgs::Lbfgs(std::vector<ParameterInfo> parameters, const LbfgsOptions& options)
    : Optimizer(std::move(parameters)), options_(options) {
  treatments_ = treatments(
      parameters_, {.weight_decay = options.weight_decay, .without_decay = options.exclude_from_decay});
  add_slot("step");
  add_slot("gradient");
  for (int64_t k = 0; k < options.history; ++k) {
    add_slot(fmt::format("s{:02d}", k));
    add_slot(fmt::format("y{:02d}", k));
  }
  add_counter("pairs", pairs_learnt_);
}

size_t Lbfgs::place_of(int64_t age) const {
  return static_cast<size_t>((pairs_learnt_ - 1 - age) % options_.history);
}

void Lbfgs::set_overlap(Vector with_last, Vector with_next) {
  with_last_ = std::move(with_last);
  with_next_ = std::move(with_next);
}

void Lbfgs::share_sums(const SharedSums& sums) {
  int64_t weights = 0;
  for (const ParameterInfo& parameter : parameters_) weights += parameter.tensor.numel();
  sums_ = weights >= kDividedFrom ? sums : SharedSums();
}

double Lbfgs::dot(const Vector& a, const Vector& b) const {
  double here = 0;
  for (size_t i = 0; i < a.size(); ++i) here += inner_product(part_of(a[i], sums_), part_of(b[i], sums_));
  return sums_.sum(here);
}

void Lbfgs::update(TensorLists& lists) {
  StepReport norms;
  for (size_t i = 0; i < lists.weights.size(); ++i) {
    norms.sums.push_back(
        {.weight = squared_norm(lists.weights[i]), .gradient = squared_norm(lists.gradients[i])});
    norms.ratios.push_back(1);
  }
  Vector gradient = clones(lists.gradients);
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i].add_(lists.weights[i], treatments_[i].decay);
  if (updates_done() > 0) learn_pair(with_last_.empty() ? lists.gradients : with_last_);

  Vector step = direction(gradient);
  for (size_t i = 0; i < step.size(); ++i) {
    step[i].mul_(-learning_rate());
    lists.weights[i].add_(step[i]);
    norms.sums[i].change = squared_norm(step[i]);
  }
  copy(last_step_taken(), step);
  copy(gradient_then(), with_next_.empty() ? lists.gradients : with_next_);
  with_last_.clear();
  with_next_.clear();
  report(norms);
}

void Lbfgs::learn_pair(const Vector& gradient_now) {
  const Vector& step = last_step_taken();
  Vector difference = clones(gradient_now);
  add(difference, gradient_then(), -1);
  for (size_t i = 0; i < step.size(); ++i) difference[i].add_(step[i], treatments_[i].decay);
  // Written so that NaN is left out too.
  if (!(dot(difference, step) > options_.min_curvature * dot(step, step))) return;
  pairs_learnt_ += 1;
  copy(slot(2 + 2 * place_of(0)), step);
  copy(slot(3 + 2 * place_of(0)), difference);
}

Lbfgs::Vector Lbfgs::direction(const Vector& gradient) const {
  Vector d = clones(gradient);
  const int64_t pairs = std::min(pairs_learnt_, options_.history);
  if (pairs == 0) {
    const double norm = std::sqrt(dot(d, d));
    for (at::Tensor& part : d) part.mul_(norm > 1 ? 1 / norm : 1);
    return d;
  }
  std::vector<double> alpha(static_cast<size_t>(pairs)), rho(static_cast<size_t>(pairs));
  for (int64_t age = 0; age < pairs; ++age) {
    const auto k = static_cast<size_t>(age);
    rho[k] = 1 / dot(y(age), s(age));
    alpha[k] = rho[k] * dot(s(age), d);
    add(d, y(age), -alpha[k]);
  }
  const double scale = 1 / (rho[0] * dot(y(0), y(0)));
  for (at::Tensor& part : d) part.mul_(scale);
  for (int64_t age = pairs - 1; age >= 0; --age) {
    const auto k = static_cast<size_t>(age);
    add(d, s(age), alpha[k] - rho[k] * dot(y(age), d));
  }
  return d;
}

OptimizerEntry lbfgs_entry() {
  return optimizer_entry<Lbfgs, LbfgsOptions>(
      {"lbfgs", "L-BFGS", "Multi-batch L-BFGS with overlapping batches (Berahas et al. 2016)."},
      [](const LbfgsOptions& o) {
        return OptimizerTraits{.overlap = o.overlap, .has_preconditioner = false, .couples_tensors = true};
      });
}

}  // namespace basin
