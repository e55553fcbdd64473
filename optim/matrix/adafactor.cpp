#include "optim/matrix/adafactor.h"

#include <ATen/ATen.h>

#include "core/math/as_matrix.h"
#include "core/math/tensor_norms.h"
#include "optim/registry.h"

namespace basin {
namespace {

double root_mean_square(const at::Tensor& tensor) {
  return std::sqrt(squared_norm(tensor) / static_cast<double>(std::max<int64_t>(1, tensor.numel())));
}

}  // namespace

void bind_options(OptionTable& table, AdafactorOptions& options) {
  table.add("beta1", options.beta1, half_open(0, 1),
            "share of the averaged step that is kept; 0: no average");
  table.add("decay_rate", options.decay_rate, at_least(0),
            "update t keeps 1 - t^-decay_rate of the second moment");
  table.add("eps1", options.eps1, greater_than(0), "added to squared gradients");
  table.add("eps2", options.eps2, at_least(0),
            "scale_parameter: least root mean square of the weights that counts");
  table.add("clip_threshold", options.clip_threshold, at_least(0),
            "largest root mean square of a tensor's step over its scale; 0: no clip");
  table.add("scale_parameter", options.scale_parameter, anything(),
            "steps are shares of the root mean square of a tensor's weights");
  table.add("relative_step", options.relative_step, anything(), "the rate is at most 1/sqrt(t) at update t");
  table.add("factored", options.factored, one_of({"matrix", "last_two"}),
            "what is a matrix of a convolution: its filters as rows, or each kernel");
  bind_decay(table, options);
}

Adafactor::Adafactor(std::vector<ParameterInfo> parameters, const AdafactorOptions& options)
    : Optimizer(std::move(parameters)), options_(options) {
  treatments_ = treatments(parameters_, decay_rules(options));
  std::vector<at::Tensor> rows, columns, all;
  for (const ParameterInfo& parameter : parameters_) {
    const at::Tensor w = parameter.tensor.detach();
    const at::Tensor none = at::empty({0}, w.options());
    const bool is_factored = w.dim() > 1 && w.numel() > 0;
    rows.push_back(is_factored ? at::zeros_like(folded(w).narrow(-1, 0, 1)).contiguous() : none);
    columns.push_back(is_factored ? at::zeros_like(folded(w).narrow(-2, 0, 1)).contiguous() : none);
    all.push_back(is_factored ? none : at::zeros_like(w));
  }
  add_slot("row_moment", std::move(rows));
  add_slot("column_moment", std::move(columns));
  add_slot("second_moment", std::move(all));
  if (options.beta1 > 0) add_slot("first_moment");
}

at::Tensor Adafactor::folded(const at::Tensor& tensor) const {
  return options_.factored == "matrix" ? as_matrix(tensor) : tensor;
}

void Adafactor::learn(size_t i, const at::Tensor& gradient) {
  const double share = std::pow(static_cast<double>(updates_done() + 1), -options_.decay_rate);
  const at::Tensor squares = gradient.square().add_(options_.eps1);
  if (slot(0)[i].numel() == 0) {
    slot(2)[i].lerp_(squares, share);
    return;
  }
  const at::Tensor matrix = folded(squares);
  slot(0)[i].lerp_(matrix.mean(-1, /*keepdim=*/true), share);
  slot(1)[i].lerp_(matrix.mean(-2, /*keepdim=*/true), share);
}

// Factor by factor: R C of squares that are all eps1 is 0 in float32.
at::Tensor Adafactor::inverse_root(size_t i) const {
  if (slot(0)[i].numel() == 0) return slot(2)[i].rsqrt();
  const at::Tensor& rows = slot(0)[i];
  const at::Tensor product = (rows / rows.mean(-2, /*keepdim=*/true)).rsqrt_() * slot(1)[i].rsqrt();
  return product.reshape(parameters_[i].tensor.sizes());
}

double Adafactor::scale_of(const at::Tensor& weights) const {
  return options_.scale_parameter ? std::max(options_.eps2, root_mean_square(weights)) : 1;
}

double Adafactor::clip_of(const at::Tensor& direction) const {
  if (options_.clip_threshold == 0) return 1;
  return std::max(1.0, root_mean_square(direction) / options_.clip_threshold);
}

double Adafactor::rate_of(size_t i, int64_t update) const {
  const double rate = learning_rate() * treatments_[i].rate_factor;
  return options_.relative_step ? std::min(rate, 1 / std::sqrt(static_cast<double>(update))) : rate;
}

void Adafactor::update(TensorLists& lists) {
  StepReport norms;
  for (size_t i = 0; i < lists.weights.size(); ++i) {
    const at::Tensor &w = lists.weights[i], &g = lists.gradients[i];
    TensorSums sums{.weight = squared_norm(w), .gradient = squared_norm(g)};
    learn(i, g);
    at::Tensor direction = inverse_root(i).mul_(g);
    const double scale = scale_of(w), clip = clip_of(direction);
    direction.div_(clip);
    if (options_.beta1 > 0) direction = slot(3)[i].mul_(options_.beta1).add_(direction, 1 - options_.beta1);
    const double decay = learning_rate() * treatments_[i].rate_factor * treatments_[i].decay;
    const at::Tensor step = (direction * (rate_of(i, updates_done() + 1) * scale)).add_(w, decay);
    w.sub_(step);
    sums.change = squared_norm(step);
    norms.sums.push_back(sums);
    norms.ratios.push_back(scale / clip);
  }
  report(norms);
}

std::string Adafactor::trust_ratio_definition() const {
  return fmt::format("{} / max(1, RMS(u) / {}), u the gradient over the root of its second moment",
                     options_.scale_parameter ? fmt::format("max({}, RMS(w))", options_.eps2) : "1",
                     options_.clip_threshold > 0 ? options_.clip_threshold : INFINITY);
}

std::vector<at::Tensor> Adafactor::preconditioner(const std::vector<at::Tensor>& gradients) const {
  if (updates_done() == 0) return no_diagonal();
  std::vector<at::Tensor> p;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor inverse = inverse_root(i).to(at::kDouble);
    const double ratio = scale_of(parameters_[i].tensor.detach()) / clip_of(inverse * gradients[i]);
    const double rates =
        options_.relative_step ? rate_of(i, updates_done()) / learning_rate() : treatments_[i].rate_factor;
    p.push_back(inverse.reciprocal().div_(ratio * rates));
  }
  return p;
}

OptimizerEntry adafactor_entry() {
  return optimizer_entry<Adafactor, AdafactorOptions>(
      {.name = "adafactor",
       .label = "Adafactor",
       .help = "Adam-like steps with a factored second moment, in shares of the weights.",
       .undecayed = {"scale_parameter=false"}},
      [](const AdafactorOptions& o) {
        return OptimizerTraits{.squares_in = {"row_moment", "column_moment", "second_moment"},
                               .state_by_weight = false,
                               .momentum = o.beta1};
      });
}

}  // namespace basin
