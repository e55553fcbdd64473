#include "optim/matrix/muon.h"

#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "core/math/as_matrix.h"
#include "core/math/tensor_norms.h"
#include "optim/registry.h"

namespace basin {
namespace {

constexpr double kLinear = 3.4445, kCubic = -4.7750, kQuintic = 2.0315;
constexpr double kAboveZero = 1e-7;  // added to the norm, as in the published code; torch takes the larger

at::Tensor orthogonal(const at::Tensor& matrix, const MuonOptions& options) {
  if (options.orthogonalise == "newton_schulz") return newton_schulz(matrix, options.iterations);
  const auto [u, s, v] = at::linalg_svd(matrix, /*full_matrices=*/false);
  // Rounding alone decides where singular vectors of 0 point: a unit without a gradient stays where it is.
  const double none = 1e-7 * static_cast<double>(std::max(matrix.size(0), matrix.size(1)));
  return at::mm(u.mul(s.gt(s.max().mul(none))), v);
}

double scale_of(const at::Tensor& matrix, const std::string& adjust) {
  const auto rows = static_cast<double>(matrix.size(0)), columns = static_cast<double>(matrix.size(1));
  return adjust == "rms" ? 0.2 * std::sqrt(std::max(rows, columns))
                         : std::sqrt(std::max(1.0, rows / columns));
}

}  // namespace

at::Tensor newton_schulz(const at::Tensor& matrix, int64_t iterations) {
  const bool tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = tall ? matrix.t() : matrix;
  x = x / (std::sqrt(squared_norm(matrix)) + kAboveZero);
  for (int64_t i = 0; i < iterations; ++i) {
    const at::Tensor a = at::mm(x, x.t());
    x = kLinear * x + at::mm(kCubic * a + kQuintic * at::mm(a, a), x);
  }
  return tall ? x.t() : x;
}

void bind_options(OptionTable& table, MuonOptions& options) {
  table.add("momentum", options.momentum, half_open(0, 1), "share of the averaged gradient that is kept");
  table.add("nesterov", options.nesterov, anything(), "Nesterov's look-ahead");
  table.add("orthogonalise", options.orthogonalise, one_of({"newton_schulz", "exact"}),
            "exact: by a singular value decomposition");
  table.add("iterations", options.iterations, at_least(1), "of Newton and Schulz");
  table.add(
      "adjust", options.adjust, one_of({"rms", "spectral"}),
      "factor on a matrix's step: rms: 0.2 sqrt(max(rows, columns)); spectral: sqrt(max(1, rows / columns))");
  table.add("by_adam", options.by_adam, exclusions_from_decay(),
            "parameters that AdamW steps, besides those of fewer than two dimensions");
  table.add("adam_rate", options.adam_rate, greater_than(0),
            "factor on the learning rate of AdamW's parameters");
  table.add("beta1", options.beta1, half_open(0, 1), "AdamW's, of the first moment");
  table.add("beta2", options.beta2, half_open(0, 1), "AdamW's, of the second moment");
  table.add("eps", options.eps, at_least(0), "AdamW's, added to the root of the second moment");
  bind_decay(table, options);
}

Muon::Muon(std::vector<ParameterInfo> parameters, const MuonOptions& options)
    : Optimizer(std::move(parameters)), options_(options) {
  treatments_ = treatments(parameters_, decay_rules(options));
  const std::vector<bool> listed = matched_by(parameters_, options.by_adam);
  for (size_t i = 0; i < parameters_.size(); ++i)
    goes_by_adam_.push_back(listed[i] || parameters_[i].tensor.dim() < 2);
  add_slot("momentum");
  add_slot("second_moment", goes_by_adam_);
}

void Muon::update(TensorLists& lists) {
  StepReport norms;
  for (size_t i = 0; i < lists.weights.size(); ++i) {
    const at::Tensor &w = lists.weights[i], &g = lists.gradients[i];
    const double rate = learning_rate() * treatments_[i].rate_factor;
    TensorSums sums{.weight = squared_norm(w), .gradient = squared_norm(g)};
    at::Tensor step = w * (rate * treatments_[i].decay);
    const double own_rate = is_matrix(i) ? rate : rate * options_.adam_rate;
    step.add_(is_matrix(i) ? matrix_direction(i, g) : adam_direction(i, g), own_rate);
    w.sub_(step);
    sums.change = squared_norm(step);
    norms.sums.push_back(sums);
    norms.ratios.push_back(1);
  }
  report(norms);
}

at::Tensor Muon::matrix_direction(size_t i, const at::Tensor& gradient) {
  if (gradient.numel() == 0) return at::zeros_like(gradient);
  const double keep = options_.momentum;
  at::Tensor& momentum = slot(0)[i];
  momentum.mul_(keep).add_(gradient, 1 - keep);
  const at::Tensor d = as_matrix(options_.nesterov ? momentum.mul(keep).add_(gradient, 1 - keep) : momentum);
  return orthogonal(d, options_).mul(scale_of(d, options_.adjust)).reshape(gradient.sizes());
}

at::Tensor Muon::adam_direction(size_t i, const at::Tensor& gradient) {
  at::Tensor &m = slot(0)[i], &v = slot(1)[i];
  m.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
  v.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
  const auto t = static_cast<double>(updates_done() + 1);
  const double c1 = 1 - std::pow(options_.beta1, t), c2 = 1 - std::pow(options_.beta2, t);
  const at::Tensor r = (m / c1) / ((v / c2).sqrt_().add_(options_.eps));
  return at::where(m == 0, at::zeros_like(r), r);
}

OptimizerEntry muon_entry() {
  return optimizer_entry<Muon, MuonOptions>(
      {"muon", "Muon", "Momentum orthogonalised matrix by matrix, AdamW for the rest."},
      [](const MuonOptions& o) {
        return OptimizerTraits{
            .squares_in = {"second_moment"}, .has_preconditioner = false, .momentum = o.momentum};
      });
}

}  // namespace basin
