#include "landscape/ball_maximum.h"

#include <ATen/ATen.h>

#include <cmath>

namespace basin {
namespace {

constexpr double kMomentum = 0.75;     // of the new step, the rest of the last one
constexpr double kRisingShare = 0.75;  // of steps that must go up for s to stay
constexpr int64_t kFirstShare = 22, kShareShrinks = 3, kLeastShare = 6;  // percent of the iterations

at::Tensor project(const BallSearch& search, const at::Tensor& u) {
  if (!search.project) return u;
  if (search.norm == BallNorm::linf) return u.clamp(-search.radius, search.radius);
  const double length = ball_norm(BallNorm::l2, u);
  return length > search.radius ? u * (search.radius / length) : u;
}

at::Tensor uphill(BallNorm norm, const at::Tensor& gradient) {
  if (norm == BallNorm::linf) return gradient.sgn();
  const double length = ball_norm(BallNorm::l2, gradient);
  return length > 0 ? gradient / length : gradient;
}

/// The state of one search, a method per step of the algorithm.
class Climb {
 public:
  Climb(const BallFunction& f, const at::Tensor& start, const BallSearch& search)
      : f_(f), search_(search), step_(2 * search.radius) {
    u_ = previous_ = start;
    evaluate();
    maximum_.start_value = value_;
    maximum_.zero_gradient = !maximum_.nonfinite && gradient_.count_nonzero().item<int64_t>() == 0;
    best_at_look_ = maximum_.value;
  }

  bool can_move() const { return !maximum_.nonfinite && !maximum_.zero_gradient; }

  void move() {
    const at::Tensor straight = project(search_, u_ + uphill(search_.norm, gradient_) * step_);
    const at::Tensor next =
        first_step_ ? straight
                    : project(search_, u_ + (straight - u_) * kMomentum + (u_ - previous_) * (1 - kMomentum));
    first_step_ = false;
    previous_ = u_;
    u_ = next;
    const double before = value_;
    evaluate();
    ++steps_since_look_;
    if (value_ > before) ++rises_since_look_;
  }

  void look() {
    const bool few_rises =
        static_cast<double>(rises_since_look_) < kRisingShare * static_cast<double>(steps_since_look_);
    const bool stuck = !halved_at_look_ && maximum_.value == best_at_look_;
    halved_at_look_ = few_rises || stuck;
    if (halved_at_look_) {
      step_ /= 2;
      go_to_best();
    }
    best_at_look_ = maximum_.value;
    steps_since_look_ = rises_since_look_ = 0;
  }

  const BallMaximum& maximum() const { return maximum_; }

 private:
  void evaluate() {
    value_ = f_(u_, gradient_);
    ++maximum_.evaluations;
    if (!std::isfinite(value_) || !std::isfinite(gradient_.abs().sum().item<double>())) {
      maximum_.nonfinite = true;
    } else if (!maximum_.point.defined() || value_ > maximum_.value) {
      maximum_.value = value_;
      maximum_.point = u_;
      best_gradient_ = gradient_;
    }
  }

  /// Without the step that led away from there.
  void go_to_best() {
    u_ = previous_ = maximum_.point;
    gradient_ = best_gradient_;
    value_ = maximum_.value;
  }

  const BallFunction& f_;
  const BallSearch& search_;
  BallMaximum maximum_;
  at::Tensor u_, previous_, gradient_, best_gradient_;
  double value_ = 0, step_, best_at_look_ = 0;
  int64_t steps_since_look_ = 0, rises_since_look_ = 0;
  bool first_step_ = true, halved_at_look_ = false;
};

}  // namespace

double ball_norm(BallNorm norm, const at::Tensor& u) {
  const double largest = u.abs().max().item<double>();
  if (norm == BallNorm::linf || !(largest > 0)) return largest;
  return largest * (u / largest).norm().item<double>();  // squares of huge numbers would be infinite
}

std::vector<int64_t> apgd_checkpoints(int64_t iterations) {
  std::vector<int64_t> checkpoints;
  int64_t share = kFirstShare, gap = kFirstShare;
  while (share <= 100) {
    const int64_t at = (share * iterations + 99) / 100;  // rounded up
    if (checkpoints.empty() || at > checkpoints.back()) checkpoints.push_back(at);
    gap = std::max(gap - kShareShrinks, kLeastShare);
    share += gap;
  }
  return checkpoints;
}

BallMaximum maximise_in_ball(const BallFunction& f, const at::Tensor& start, const BallSearch& search) {
  Climb climb(f, start, search);
  const std::vector<int64_t> looks = apgd_checkpoints(search.iterations);
  auto next_look = looks.begin();
  for (int64_t i = 1; i <= search.iterations && climb.can_move(); ++i) {
    climb.move();
    if (next_look == looks.end() || i < *next_look || !climb.can_move()) continue;
    climb.look();
    ++next_look;
  }
  return climb.maximum();
}

}  // namespace basin
