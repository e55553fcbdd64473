// defines: Problem, what can be asked of a mean loss over fixed examples; Answer, Unanswered and CurvatureProducts.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "hessian/curvature_kind.h"
#include "hessian/linear_operator.h"
#include "hessian/parameter_vector.h"

namespace basin {

class Objective;

/// What a problem may know to answer, all of it at the parameters as they are. l_i is the loss of example i.
enum class Answer {
  loss,            // L = 1/n sum_i l_i
  gradient,        // dL/dw, and L with it
  product,         // H v with the Hessian H of L
  batch_gradient,  // the gradient of sum_k a_k l_{i_k} for a batch of examples i_k with weights a_k, and that sum
  batch_product,  // the product with the Hessian of the same sum
  losses,         // l_i of the examples asked for
  logits,         // what the network puts out, with its graph: in this process alone
  layers,         // what each layer computes: networks built from models/layers.h alone
};
/// As spelled here; in words for messages: "the gradient of a weighted batch".
const char* to_string(Answer answer);
const char* in_words(Answer answer);
const std::vector<Answer>& all_answers();

/// A problem was asked what it can't answer.
struct Unanswered : ConfigError {
  explicit Unanswered(const std::vector<Answer>& missing);
};

/// Products with a curvature matrix of a problem at its parameters, which may move between two of them.
class CurvatureProducts : public LinearOperator {
 public:
  /// |first - second| / |first| of one product made twice: 0 where the arithmetic is deterministic.
  virtual double repeat_difference() = 0;
};

/// L(w) = 1/n sum_i l_i(w) over n fixed examples, without weight decay and nothing drawn at random: the same w, the same
/// answers. Whoever measures moves w (parameters(), hessian/parameter_vector.h), asks, and puts w back. Objective answers
/// in this process, OutsideProblem (hessian/outside/outside_problem.h) has another process answer.
///
/// A question that the problem doesn't know to answer (answers()) throws Unanswered; probes say before they measure which
/// answers they need (Probe::needs()). Scalars are in float64, vectors flat, of dtype(), on device().
class Problem {
 public:
  virtual ~Problem() = default;
  virtual bool answers(Answer answer) const = 0;

  virtual const ParameterVector& parameters() const = 0;
  virtual int64_t examples() const = 0;
  virtual std::string loss_units() const = 0;  // "nat" or "1"

  virtual double loss() = 0;
  /// Also sets `loss` where given.
  virtual at::Tensor gradient(double* loss = nullptr) = 0;
  /// The mean gradient over the examples `index` (int64).
  virtual at::Tensor gradient_over(const at::Tensor& index) = 0;
  virtual std::unique_ptr<CurvatureProducts> curvature(Curvature kind) = 0;
  /// The same loss over the examples `index` (int64) alone, with the same parameters. Counts gradients from 0.
  virtual std::unique_ptr<Problem> part(const at::Tensor& index) const = 0;

  /// Gradients over the whole set so far.
  virtual int64_t gradients_done() const = 0;
  /// Examples of one pass; 0: not known here.
  virtual int64_t micro_batch() const = 0;
  /// "running" where batch norm has frozen statistics, "none" without batch norm; "" where that isn't known.
  virtual std::string batch_norm_mode() const = 0;
  /// The network, where it is in this process; else null.
  virtual Objective* network() { return nullptr; }

  at::ScalarType dtype() const;
  at::Device device() const;
};

/// Those of `needed` that the problem doesn't answer, in that order.
std::vector<Answer> missing_answers(const std::vector<Answer>& needed, const Problem& problem);

}  // namespace basin
