#include "optim/schedule_free.h"

#include <ATen/ATen.h>

#include "core/math/tensor_norms.h"
#include "optim/registry.h"

namespace basin {
namespace {

template <class Options>
void bind_averaging(OptionTable& table, Options& options) {
  table.add("averaging_power", options.averaging_power, at_least(0),
            "update t has a weight of t^averaging_power in the average");
  table.add("rate_power", options.rate_power, at_least(0),
            "times the largest learning rate so far to this power");
  bind_decay(table, options,
             "each update also subtracts lr * weight_decay * weight, where the gradient is taken");
}

constexpr const char* kShareHelp = "share of the average in the weights where the gradient is taken";

}  // namespace

void bind_options(OptionTable& table, ScheduleFreeSgdOptions& options) {
  table.add("momentum", options.momentum, half_open(0, 1), kShareHelp);
  bind_averaging(table, options);
}

void bind_options(OptionTable& table, ScheduleFreeAdamWOptions& options) {
  table.add("beta1", options.beta1, half_open(0, 1), kShareHelp);
  table.add("beta2", options.beta2, half_open(0, 1), "decay of the second moment");
  table.add("eps", options.eps, at_least(0), "added to the root of the corrected second moment");
  bind_averaging(table, options);
}

ScheduleFree::ScheduleFree(std::vector<ParameterInfo> parameters, const ScheduleFreeSgdOptions& options)
    : Optimizer(std::move(parameters)),
      beta_(options.momentum),
      averaging_power_(options.averaging_power),
      rate_power_(options.rate_power) {
  treatments_ = treatments(parameters_, decay_rules(options));
  add_number("weight_sum", weight_sum_);
  add_number("largest_rate", largest_rate_);
  add_slot("fast_weights");
}

ScheduleFree::ScheduleFree(std::vector<ParameterInfo> parameters, const ScheduleFreeAdamWOptions& options)
    : Optimizer(std::move(parameters)),
      beta_(options.beta1),
      averaging_power_(options.averaging_power),
      rate_power_(options.rate_power),
      normalises_(true),
      beta2_(options.beta2),
      eps_(options.eps) {
  treatments_ = treatments(parameters_, decay_rules(options));
  add_number("weight_sum", weight_sum_);
  add_number("largest_rate", largest_rate_);
  add_slot("fast_weights");
  add_slot("second_moment");
}

// Before the first update z is x, whatever x became since the constructor.
at::Tensor ScheduleFree::gradient_point(size_t i) const {
  const at::Tensor x = parameters_[i].tensor.detach();
  return updates_done() == 0 ? x.clone() : x.lerp(slot(0)[i], 1 - beta_);
}

void ScheduleFree::go_to_gradient_point() {
  const at::NoGradGuard no_grad;
  if (!kept_.empty()) return;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor y = gradient_point(i);
    kept_.push_back(parameters_[i].tensor.detach().clone());
    parameters_[i].tensor.copy_(y);
  }
}

void ScheduleFree::leave_gradient_point() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < kept_.size(); ++i) parameters_[i].tensor.copy_(kept_[i]);
  kept_.clear();
}

at::Tensor ScheduleFree::denominator(size_t i, int64_t updates) const {
  const double correction = 1 - std::pow(beta2_, static_cast<double>(updates));
  return slot(1)[i].div(correction).sqrt_().add_(eps_);
}

at::Tensor ScheduleFree::direction(size_t i, const at::Tensor& gradient) {
  if (!normalises_) return gradient.clone();
  slot(1)[i].mul_(beta2_).addcmul_(gradient, gradient, 1 - beta2_);
  const at::Tensor r = gradient / denominator(i, updates_done() + 1);
  return at::where(gradient == 0, at::zeros_like(r), r);
}

double ScheduleFree::weight_of_step() {
  largest_rate_ = std::max(largest_rate_, learning_rate());
  const double weight = std::pow(static_cast<double>(updates_done() + 1), averaging_power_) *
                        std::pow(largest_rate_, rate_power_);
  weight_sum_ += weight;
  return weight_sum_ > 0 ? weight / weight_sum_ : 0;
}

void ScheduleFree::update(TensorLists& lists) {
  const double share = weight_of_step();
  StepReport norms;
  for (size_t i = 0; i < lists.weights.size(); ++i) {
    const at::Tensor &x = lists.weights[i], &g = lists.gradients[i];
    TensorSums sums{.weight = squared_norm(x), .gradient = squared_norm(g)};
    const at::Tensor y = gradient_point(i);
    at::Tensor& z = slot(0)[i];
    if (updates_done() == 0) z.copy_(x);
    const at::Tensor d = direction(i, g).add_(y, treatments_[i].decay);
    z.sub_(d, learning_rate() * treatments_[i].rate_factor);
    const at::Tensor change = (z - x).mul_(share);
    x.add_(change);
    sums.change = squared_norm(change);
    norms.sums.push_back(sums);
    norms.ratios.push_back(1);
  }
  report(norms);
}

std::vector<at::Tensor> ScheduleFree::preconditioner(const std::vector<at::Tensor>& gradients) const {
  std::vector<at::Tensor> p = Optimizer::preconditioner(gradients);
  if (!normalises_) return p;
  if (updates_done() == 0) return no_diagonal();
  for (size_t i = 0; i < p.size(); ++i)
    p[i] = denominator(i, updates_done()).to(at::kDouble).div_(treatments_[i].rate_factor);
  return p;
}

namespace {

/// 4^400 is a double, and (3/4)^400 of the average before is none of it: the last fast weights alone.
constexpr const char* kWithoutAverage = "averaging_power=400";

template <class Options>
OptimizerEntry entry_of(OptimizerEntry entry, const std::string& without_average,
                        OptimizerTraits (*traits)(const Options&)) {
  entry.memoryless = {without_average, kWithoutAverage};
  entry.undecayed = {"averaging_power=8"};
  return optimizer_entry<ScheduleFree, Options>(std::move(entry), traits);
}

}  // namespace

OptimizerEntry schedule_free_sgd_entry() {
  return entry_of<ScheduleFreeSgdOptions>(
      {"schedule_free_sgd", "Schedule-free SGD", "SGD whose average of weights is what is evaluated."},
      "momentum=0", [](const ScheduleFreeSgdOptions&) {
        return OptimizerTraits{.weights_in = {"fast_weights"}, .gradients_elsewhere = true};
      });
}

OptimizerEntry schedule_free_adamw_entry() {
  return entry_of<ScheduleFreeAdamWOptions>(
      {"schedule_free_adamw", "Schedule-free AdamW", "AdamW whose average of weights is what is evaluated."},
      "beta1=0", [](const ScheduleFreeAdamWOptions&) {
        return OptimizerTraits{
            .squares_in = {"second_moment"}, .weights_in = {"fast_weights"}, .gradients_elsewhere = true};
      });
}

}  // namespace basin
