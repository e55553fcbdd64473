#include "hessian/outside/outside_problem.h"

#include <ATen/ATen.h>

#include "core/math/tensor_norms.h"
#include "core/seed.h"
#include "hessian/eigenpairs.h"

namespace basin {
namespace {

/// The Hessian, product by product.
class OutsideProducts final : public CurvatureProducts {
 public:
  OutsideProducts(std::shared_ptr<Partner> partner, at::Tensor index)
      : partner_(std::move(partner)), index_(std::move(index)) {}
  int64_t size() const override { return partner_->parameters().size(); }
  at::ScalarType dtype() const override { return partner_->hello().dtype; }
  at::Device device() const override { return at::kCPU; }
  at::Tensor apply(const at::Tensor& x) override { return partner_->product(x, index_); }
  /// Two products with all examples.
  double repeat_difference() override {
    const at::Tensor direction = at::ones({size()}, dtype());
    const at::Tensor first = apply(direction);
    const double difference = norm_of(apply(direction) - first);
    return difference == 0 ? 0 : difference / norm_of(first);
  }

 private:
  std::shared_ptr<Partner> partner_;
  at::Tensor index_;
};

// Sums of the same terms in another order differ by some hundred roundings, of float32 in parts of many a float64 loss
// (transformers takes logits to it).
double allowed(const Problem& problem) { return problem.dtype() == at::kDouble ? 1e-6 : 1e-4; }

bool differ(double a, double b, double relative) {
  return std::abs(a - b) > relative * std::max(std::abs(a), std::abs(b));
}

void check_loss(OutsideProblem& problem, double first) {
  // Kernels that add in another order each time are no other examples.
  const double again = problem.loss(), rounding = allowed(problem) / 100;
  if (differ(first, again, rounding))
    throw PartnerError(fmt::format(
        "the loss at the same weights is {:.9g}, then {:.9g}: the examples must be the same each time "
        "(no shuffling, augmentation or dropout)",
        first, again));
}

void check_symmetry(OutsideProblem& problem, uint64_t seed) {
  const std::unique_ptr<CurvatureProducts> hessian = problem.curvature(Curvature::hessian);
  at::Generator generator = make_generator(derive_seed(seed, "symmetry"));
  const auto draw = [&] { return at::randn({hessian->size()}, generator, at::kDouble).to(problem.dtype()); };
  const at::Tensor u = draw(), v = draw();
  const at::Tensor hu = hessian->apply(u), hv = hessian->apply(v);
  const double uhv = inner_product(u, hv), vhu = inner_product(v, hu);
  // Two random vectors are nearly orthogonal: u'Hv is this much smaller than the product of their lengths.
  const double scale =
      (norm_of(u) * norm_of(hv) + norm_of(v) * norm_of(hu)) / std::sqrt(static_cast<double>(hessian->size()));
  if (std::abs(uhv - vhu) > kMostAsymmetry * scale)
    throw PartnerError(fmt::format(
        "u'Hv = {:.6g} but v'Hu = {:.6g}: the products are not those of a Hessian, or are too coarse", uhv,
        vhu));
}

constexpr int64_t kFew = 16;

/// Shuffled examples have the same mean: it is by example that they are seen to move.
void check_losses(OutsideProblem& problem, double loss) {
  const bool all = problem.losses_in_one_pass();
  const at::Tensor index =
      at::arange(all ? problem.examples() : std::min(kFew, problem.examples()), at::kLong);
  const at::Tensor losses = problem.losses(index), again = problem.losses(index);
  const double mean = losses.mean().item<double>();
  const double moved = (losses - again).abs().max().item<double>();
  if (moved > allowed(problem) * losses.abs().max().item<double>())
    throw PartnerError(
        fmt::format("an example's loss at the same weights changes by {:.3g}: the examples must be the same "
                    "each time, in the same "
                    "order (no shuffling, augmentation or dropout)",
                    moved));
  if (all && differ(mean, loss, allowed(problem)))
    throw PartnerError(fmt::format(
        "the losses by example have the mean {:.9g}, the loss is {:.9g}: it has to be their plain mean", mean,
        loss));
}

/// Every other example, so that no half is a batch as the problem has them: within one any weights may hide.
void check_batches(OutsideProblem& problem, const at::Tensor& gradient) {
  const int64_t n = problem.examples();
  at::Tensor sum = at::zeros_like(gradient);
  double terms = 0;  // near a minimum the gradient is a small difference of these
  for (int64_t first = 0; first < std::min<int64_t>(2, n); ++first) {
    const at::Tensor half = at::arange(first, n, 2, at::kLong);
    const double share = static_cast<double>(half.numel()) / static_cast<double>(n);
    const at::Tensor part = problem.gradient_over(half) * share;
    terms += norm_of(part);
    sum.add_(part);
  }
  const double off = norm_of(sum - gradient);
  if (off > allowed(problem) * terms)
    throw PartnerError(fmt::format(
        "the gradients of two halves of the examples don't add up to the gradient: {:.3g} off {:.3g}; the "
        "loss has to be the plain mean over examples",
        off, norm_of(gradient)));
}

/// A few examples together and one by one. Halves of many examples differ in their number of tokens by so little that a mean over tokens
/// passes for one over examples; a few don't.
void check_examples(OutsideProblem& problem, uint64_t seed) {
  const int64_t few = std::min(kFew, problem.examples());
  at::Generator generator = make_generator(derive_seed(seed, "examples"));
  const at::Tensor index = at::randperm(problem.examples(), generator, at::kLong).narrow(0, 0, few);
  at::Tensor mean = at::zeros({problem.parameters().size()}, problem.dtype());
  double terms = 0;
  for (int64_t i = 0; i < few; ++i) {
    const at::Tensor one = problem.gradient_over(index.narrow(0, i, 1));
    terms += norm_of(one) / static_cast<double>(few);
    mean.add_(one, 1 / static_cast<double>(few));
  }
  const double off = norm_of(problem.gradient_over(index) - mean);
  if (off > allowed(problem) * terms)
    throw PartnerError(
        fmt::format("the gradient of {} examples isn't the mean of theirs one by one: {:.3g} off {:.3g}; the "
                    "loss has to be the plain mean over "
                    "examples, of which none depends on the others",
                    few, off, norm_of(mean)));
}

}  // namespace

OutsideProblem::OutsideProblem(std::shared_ptr<Partner> partner, at::Tensor index)
    : partner_(std::move(partner)), index_(std::move(index)) {}

bool OutsideProblem::answers(Answer answer) const {
  if (!index_.defined()) return partner_->answers(answer);
  switch (answer) {
    case Answer::loss:
      return partner_->answers(Answer::losses);
    case Answer::gradient:
      return partner_->answers(Answer::batch_gradient);
    case Answer::product:
      return partner_->answers(Answer::batch_product);
    default:
      return partner_->answers(answer);
  }
}

int64_t OutsideProblem::examples() const {
  return index_.defined() ? index_.numel() : partner_->hello().examples;
}

at::Tensor OutsideProblem::gradient(double* loss) {
  ++gradients_done_;
  return partner_->gradient(index_, loss);
}

at::Tensor OutsideProblem::by_example() const {
  return index_.defined() ? index_ : at::arange(examples(), at::kLong);
}

/// Numbers among the partner's examples.
at::Tensor OutsideProblem::among(const at::Tensor& index) const {
  return index_.defined() ? index_.index_select(0, index) : index;
}

at::Tensor OutsideProblem::gradient_over(const at::Tensor& index) {
  return partner_->gradient(among(index), nullptr);
}

std::unique_ptr<CurvatureProducts> OutsideProblem::curvature(Curvature kind) {
  if (kind != Curvature::hessian) throw Unanswered({Answer::logits});
  return std::make_unique<OutsideProducts>(partner_, index_);
}

std::unique_ptr<Problem> OutsideProblem::part(const at::Tensor& index) const {
  return std::make_unique<OutsideProblem>(partner_, among(index));
}

void check_outside(OutsideProblem& problem, uint64_t seed) {
  double loss = NAN;
  if (problem.answers(Answer::loss)) check_loss(problem, loss = problem.loss());
  if (problem.answers(Answer::losses) && !std::isnan(loss)) check_losses(problem, loss);
  if (problem.answers(Answer::gradient)) {
    double there = NAN;
    const at::Tensor gradient = problem.gradient(&there);
    if (!std::isnan(loss) && differ(loss, there, allowed(problem)))
      throw PartnerError(
          fmt::format("the loss is {:.9g}, but {:.9g} in the answer with the gradient", loss, there));
    if (problem.answers(Answer::batch_gradient)) {
      check_batches(problem, gradient);
      check_examples(problem, seed);
    }
  }
  if (problem.answers(Answer::product)) check_symmetry(problem, seed);
}

}  // namespace basin
