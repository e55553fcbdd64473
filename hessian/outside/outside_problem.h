// defines: OutsideProblem, a problem that another process answers; check_outside().
#pragma once

#include <memory>
#include <string>

#include "hessian/outside/partner.h"
#include "hessian/problem.h"

namespace basin {

/// A Problem whose partner has the network, the examples and the derivatives. Nothing is kept of an answer here; each
/// gradient and each product is a question, at the weights as they are then. Logits and layers are never answered.
///
/// Cost and what can go wrong: hessian/outside/partner.h.
class OutsideProblem : public Problem {
 public:
  /// `index` undefined: all examples.
  explicit OutsideProblem(std::shared_ptr<Partner> partner, at::Tensor index = {});

  bool answers(Answer answer) const override;
  const ParameterVector& parameters() const override { return partner_->parameters(); }
  int64_t examples() const override;
  std::string loss_units() const override { return partner_->hello().loss_units; }
  double loss() override { return partner_->loss(index_); }
  at::Tensor gradient(double* loss = nullptr) override;
  at::Tensor gradient_over(const at::Tensor& index) override;
  /// l_i of each example, or of those, float64.
  at::Tensor losses(const at::Tensor& index = {}) const {
    return partner_->losses(index.defined() ? among(index) : by_example());
  }
  /// Whether losses() take about as long as loss().
  bool losses_in_one_pass() const { return answers(Answer::losses) && partner_->hello().by_example; }
  /// Unanswered for all but the Hessian.
  std::unique_ptr<CurvatureProducts> curvature(Curvature kind) override;
  std::unique_ptr<Problem> part(const at::Tensor& index) const override;
  int64_t gradients_done() const override { return gradients_done_; }
  int64_t micro_batch() const override { return 0; }
  std::string batch_norm_mode() const override { return "unknown"; }

 private:
  at::Tensor among(const at::Tensor& index) const;
  at::Tensor by_example() const;  // the index, spelled out

  std::shared_ptr<Partner> partner_;
  at::Tensor index_;
  int64_t gradients_done_ = 0;
};

/// What has to hold before anything is measured, of what the problem answers: the same loss when it is asked again, and in
/// a gradient's answer; the same losses by example, with it as their mean (the same losses of a few, where each takes a pass);
/// gradients of two halves that add up to the gradient, and of a few examples whose mean is theirs together; u'Hv = v'Hu for random u and v. PartnerError otherwise, in one line:
/// a loader that shuffles or augments, dropout, a wrong derivative. Costs two losses, twice the losses by example, two
/// gradients, those of 16 single examples and two products.
void check_outside(OutsideProblem& problem, uint64_t seed);

}  // namespace basin
