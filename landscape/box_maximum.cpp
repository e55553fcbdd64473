#include "landscape/box_maximum.h"

#include <ATen/ATen.h>
#include <LBFGSB.h>

#include <cmath>
#include <exception>

namespace basin {
namespace {

using Vector = Eigen::VectorXd;

struct StopSearch : std::exception {};

/// How many half widths of the cube the first step of a variable of mean derivative would be without bounds.
/// In a small box f is nearly linear and its maximum close to a corner, so a step in proportion to the
/// derivatives (a factor of 1) leaves variables of small derivative inside, and ten iterations end some tenths
/// of a percent low, lower from inside than from a corner. From 100 on the numbers no longer move.
constexpr double kFirstStep = 100;

/// -f / scale over t = h u in LBFGS++'s calling convention; keeps the best point and whatever went wrong. The
/// line search tries length 1 first and the first direction is the projected gradient's, so h = 1/sqrt(p)
/// (half a diagonal has length 1) and scale = mean |df/du| / (h^2 kFirstStep) (the mean derivative in t is
/// kFirstStep h) let a first step go to a corner, but for variables whose derivative nearly vanishes.
class Descent {
 public:
  Descent(const CubeFunction& f, const at::Tensor& start) : f_(f) {
    at::Tensor gradient;
    maximum_.start_value = evaluate(start, gradient);
    h_ = 1 / std::sqrt(static_cast<double>(start.numel()));
    scale_ = gradient.abs().mean().item<double>() / (h_ * h_ * kFirstStep);
    first_gradient_ = std::move(gradient);
  }

  double operator()(const Vector& x, Vector& descent) {
    // Clamped: rounding may carry a point of the bound a last digit outside.
    const at::Tensor u =
        at::from_blob(const_cast<double*>(x.data()), {x.size()}, at::kDouble).div(h_).clamp(-1, 1);
    at::Tensor gradient;
    double value = 0;
    if (first_gradient_.defined()) {  // LBFGS++ begins with the point that gave the scale
      value = maximum_.start_value;
      gradient = first_gradient_;
    } else {
      try {
        value = evaluate(u, gradient);
      } catch (...) {
        failure_ = std::current_exception();
        throw;
      }
    }
    if (maximum_.nonfinite) throw StopSearch();
    first_gradient_.reset();
    descent = Eigen::Map<const Vector>(gradient.data_ptr<double>(), x.size()) / (-scale_ * h_);
    return (maximum_.start_value - value) / scale_;
  }

  bool can_move() const { return !maximum_.nonfinite && scale_ > 0; }
  void rethrow_failure_of_function() const {
    if (failure_) std::rethrow_exception(failure_);
  }
  void count_iteration() { ++maximum_.iterations; }
  CubeMaximum& maximum() { return maximum_; }
  double half_width() const { return h_; }

 private:
  double evaluate(const at::Tensor& u, at::Tensor& gradient) {
    const double value = f_(u, gradient);
    gradient = gradient.contiguous();
    ++maximum_.evaluations;
    if (!std::isfinite(value) || !std::isfinite(gradient.abs().sum().item<double>())) {
      maximum_.nonfinite = true;
    } else if (!maximum_.point.defined() || value > maximum_.value) {
      maximum_.value = value;
      maximum_.point = u;
    }
    return value;
  }

  const CubeFunction& f_;
  CubeMaximum maximum_;
  double scale_ = 0, h_ = 1;
  at::Tensor first_gradient_;
  std::exception_ptr failure_;
};

/// LBFGS++'s line search, counting the iterations that end well: the solver tells only where it returns.
template <class Scalar>
struct CountedLineSearch {
  template <class... Arguments>
  // NOLINTNEXTLINE(readability-identifier-naming): LBFGS++ calls it
  static void LineSearch(Descent& f, Arguments&&... arguments) {
    LBFGSpp::LineSearchMoreThuente<Scalar>::LineSearch(f, std::forward<Arguments>(arguments)...);
    f.count_iteration();
  }
};

LBFGSpp::LBFGSBParam<double> parameters(int64_t iterations, double half_width) {
  LBFGSpp::LBFGSBParam<double> p;
  // Relative to the derivative at the start. The default, an absolute 1e-5, would end the search in a flat
  // basin at once.
  p.epsilon = 1e-9 * half_width * kFirstStep;
  p.epsilon_rel = 0;
  // Where an iteration gains less than this of what was gained so far the rest is rounding, for which line searches
  // take twenty evaluations each.
  p.past = 1;
  p.delta = 1e-9;
  p.max_iterations = static_cast<int>(iterations);
  return p;
}

}  // namespace

CubeMaximum maximise_in_cube(const CubeFunction& f, const at::Tensor& start, int64_t iterations) {
  const at::Tensor inside = start.to(at::kCPU, at::kDouble).clamp(-1, 1).contiguous();
  Descent descent(f, inside);
  CubeMaximum& maximum = descent.maximum();
  if (!descent.can_move() || iterations < 1) return maximum;

  const int64_t p = inside.numel();
  const double h = descent.half_width();
  const auto settings = parameters(iterations, h);
  LBFGSpp::LBFGSBSolver<double, CountedLineSearch> solver(settings);
  Vector x = h * Eigen::Map<const Vector>(inside.data_ptr<double>(), p);
  double value = 0;
  try {
    solver.minimize(descent, x, value, Vector::Constant(p, -h), Vector::Constant(p, h));
  } catch (const std::exception& error) {
    descent.rethrow_failure_of_function();
    if (!maximum.nonfinite) maximum.stall = error.what();
  }
  return maximum;
}

}  // namespace basin
