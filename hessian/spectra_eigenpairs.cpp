#include "hessian/spectra_eigenpairs.h"

#include <ATen/ATen.h>

#include <Spectra/SymEigsSolver.h>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "core/seed.h"
#include "hessian/spectra_operator.h"

namespace basin {
namespace {

constexpr int64_t kDenseSize = 32;
constexpr double kSafety = 0.9;  // an estimate this far below the tolerance keeps the true residual below it

struct RitzPairs {
  Eigen::VectorXd values;     // ascending
  Eigen::VectorXd residuals;  // estimates beta |s_m|
  Eigen::MatrixXd vectors;    // in the Krylov basis
  double radius() const { return values.cwiseAbs().maxCoeff(); }
};

/// Spectra's solver with its Lanczos factorisation laid open, to grow it by single steps and to read all Ritz
/// pairs.
class SteppedSolver : public Spectra::SymEigsSolver<SpectraOperator> {
 public:
  SteppedSolver(SpectraOperator& op, int64_t wanted, int64_t krylov)
      : Spectra::SymEigsSolver<SpectraOperator>(op, wanted, krylov), krylov_(krylov) {}

  int64_t krylov() const { return krylov_; }
  void grow_to(int64_t size) { m_fac.factorize_from(size - 1, size, m_nmatop); }
  double beta() const { return m_fac.f_norm(); }

  RitzPairs ritz(int64_t size) const {
    const Eigen::MatrixXd h = m_fac.matrix_H().topLeftCorner(size, size);
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(h);
    RitzPairs ritz{eigen.eigenvalues(), {}, eigen.eigenvectors()};
    ritz.residuals = beta() * ritz.vectors.row(size - 1).transpose().cwiseAbs();
    return ritz;
  }

  Eigen::VectorXd lift(const Eigen::VectorXd& in_basis) const {
    return m_fac.matrix_V().leftCols(in_basis.size()) * in_basis;
  }

 private:
  int64_t krylov_;
};

struct Ends {
  int64_t large, small;
};

bool large_end_is_there(const RitzPairs& ritz, int64_t wanted, const ErrorLimits& limits) {
  const int64_t m = ritz.values.size();
  for (int64_t i = m - wanted; i < m; ++i) {
    if (ritz.residuals[i] > kSafety * limits.large(ritz.values[i], ritz.radius())) return false;
  }
  return true;
}

bool small_end_is_there(const RitzPairs& ritz, int64_t wanted, const ErrorLimits& limits) {
  for (int64_t i = 0; i < wanted; ++i) {
    if (ritz.residuals[i] > kSafety * limits.small(ritz.values[i], ritz.radius())) return false;
  }
  return true;
}

/// Spectra asks for residuals relative to |value|; ours may be ErrorLimits::kSmallEndFloor of the radius.
double small_end_slack(const RitzPairs& ritz, int64_t wanted) {
  const double largest = ritz.values.head(wanted).cwiseAbs().maxCoeff();
  return largest > 0 ? std::max(1.0, ErrorLimits::kSmallEndFloor * ritz.radius() / largest) : 1.0;
}

Eigen::VectorXd random_start(int64_t n, uint64_t seed) {
  at::Generator generator = make_generator(seed);
  const at::Tensor start = at::randn({n}, generator, at::kDouble);
  return Eigen::Map<const Eigen::VectorXd>(start.data_ptr<double>(), n);
}

int64_t krylov_limit(int64_t n, const TopEigenOptions& options, const Ends& ends) {
  const int64_t least = 2 * (ends.large + ends.small) + 4;
  const int64_t fitting = kBasisBytes / (8 * n);
  const int64_t asked = options.max_krylov > 0 ? options.max_krylov : std::min<int64_t>(120, fitting);
  return std::min(n, std::max(least, asked));
}

/// Unit vectors in the operator's type -> values, true residuals, convergence.
class Verifier {
 public:
  explicit Verifier(LinearOperator& op) : op_(op) {}

  Eigenpair verify(const Eigen::VectorXd& guess) {
    const at::Tensor host = at::from_blob(const_cast<double*>(guess.data()), {guess.size()}, at::kDouble);
    Eigenpair pair;
    pair.vector = (host / host.norm()).to(op_.device(), op_.dtype(), false, /*copy=*/true);
    const at::Tensor product = op_.apply(pair.vector).detach().to(at::kDouble);
    ++products;
    const at::Tensor v = pair.vector.to(at::kDouble);
    pair.value = v.dot(product).item<double>() / v.dot(v).item<double>();
    pair.residual = (product - pair.value * v).norm().item<double>();
    pair.relative_residual = pair.residual == 0 ? 0 : pair.residual / std::abs(pair.value);
    pair.value_bound = pair.residual;
    return pair;
  }
  int64_t products = 0;

 private:
  LinearOperator& op_;
};

struct Guesses {
  std::vector<Eigen::VectorXd> large, small;  // from the outer end inwards
};

void take_guesses(const SteppedSolver& solver, const RitzPairs& ritz, const Ends& ends, Guesses& guesses) {
  const int64_t m = ritz.values.size();
  for (int64_t i = 0; i < ends.large; ++i) guesses.large.push_back(solver.lift(ritz.vectors.col(m - 1 - i)));
  for (int64_t i = 0; i < ends.small; ++i) guesses.small.push_back(solver.lift(ritz.vectors.col(i)));
}

/// Grows one factorisation until both ends are there or the basis is full; says which ends are missing.
struct Grown {
  Guesses guesses;
  bool large_there = false, small_there = false;
  double small_slack = 1;  // by how much the small end's tolerance is wider than one relative to its values
};

Grown grow(SpectraOperator& op, SteppedSolver& solver, const Ends& ends, const ErrorLimits& limits,
           uint64_t seed, TopEigenResult& result) {
  const Eigen::VectorXd start = random_start(op.rows(), seed);
  op.expect_start();
  solver.init(start.data());
  const int64_t most_blocks = std::max(ends.large, ends.small);
  const int64_t enough = std::min(solver.krylov(), ends.large + ends.small + 2);
  int64_t breakdowns = 0;
  Grown grown;
  for (int64_t m = 1;; ++m) {
    if (m > 1) solver.grow_to(m);
    result.krylov = m;
    if (op.failed()) return grown;
    const bool full = m == solver.krylov();
    if (m < enough && !full) continue;
    const RitzPairs ritz = solver.ritz(m);
    if (solver.beta() <= limits.noise * ritz.radius() || ritz.radius() == 0) ++breakdowns;
    // An invariant subspace shows one vector of every eigenspace; multiplicities and what the start missed
    // come with the new starts that Spectra makes next.
    if (breakdowns > 0 && breakdowns <= most_blocks && !full) continue;
    grown.large_there = large_end_is_there(ritz, ends.large, limits);
    grown.small_there = small_end_is_there(ritz, ends.small, limits);
    if (full || (grown.large_there && grown.small_there)) {
      take_guesses(solver, ritz, ends, grown.guesses);
      if (ends.small > 0) grown.small_slack = small_end_slack(ritz, ends.small);
      return grown;
    }
  }
}

/// One end by Spectra's restarted solver, started from the sum of its best vectors so far.
std::vector<Eigen::VectorXd> restart_end(SpectraOperator& op, const std::vector<Eigen::VectorXd>& best,
                                         bool large, double tolerance, int64_t krylov,
                                         const TopEigenOptions& options, TopEigenResult& result) {
  const auto wanted = static_cast<int64_t>(best.size());
  SteppedSolver solver(op, wanted, krylov);
  Eigen::VectorXd start = 1e-3 * random_start(op.rows(), options.seed + 1).normalized();
  for (const Eigen::VectorXd& vector : best) start += vector;
  op.expect_start();
  solver.init(start.data());
  const auto rule = large ? Spectra::SortRule::LargestAlge : Spectra::SortRule::SmallestAlge;
  solver.compute(rule, options.max_restarts, kSafety * tolerance, rule);
  result.restarts += solver.num_iterations();
  result.method = "spectra-restarted";
  Guesses guesses;
  const Ends ends = large ? Ends{wanted, 0} : Ends{0, wanted};
  take_guesses(solver, solver.ritz(krylov), ends, guesses);
  return large ? guesses.large : guesses.small;
}

Guesses krylov_guesses(LinearOperator& op, const TopEigenOptions& options, const Ends& ends,
                       const ErrorLimits& limits, TopEigenResult& result) {
  SpectraOperator wrapped(op);
  result.method = "spectra-lanczos";
  const int64_t krylov = krylov_limit(op.size(), options, ends);
  Grown grown;
  {  // its basis is given back before a restart makes another
    SteppedSolver solver(wrapped, std::max<int64_t>(1, std::min(krylov - 1, ends.large + ends.small)),
                         krylov);
    grown = grow(wrapped, solver, ends, limits, options.seed, result);
  }
  const bool restart = !wrapped.failed() && krylov < op.size() && options.max_restarts > 0;
  if (restart && !grown.large_there) {
    grown.guesses.large =
        restart_end(wrapped, grown.guesses.large, true, options.tolerance, krylov, options, result);
  }
  if (restart && !grown.small_there) {
    grown.guesses.small = restart_end(wrapped, grown.guesses.small, false,
                                      options.tolerance * grown.small_slack, krylov, options, result);
  }
  result.products += wrapped.products();
  wrapped.rethrow_if_failed();
  if (wrapped.nonfinite()) result.status = SolverStatus::nonfinite;
  return grown.guesses;
}

Guesses dense_guesses(LinearOperator& op, const Ends& ends, TopEigenResult& result) {
  result.method = "dense";
  const int64_t n = op.size();
  Eigen::MatrixXd matrix(n, n);
  for (int64_t i = 0; i < n; ++i) {
    at::Tensor unit = at::zeros({n}, at::TensorOptions(op.dtype()).device(op.device()));
    unit[i] = 1;
    const at::Tensor column = op.apply(unit).detach().to(at::kCPU, at::kDouble).contiguous();
    matrix.col(i) = Eigen::Map<const Eigen::VectorXd>(column.data_ptr<double>(), n);
  }
  result.products += n;
  result.krylov = n;
  if (!matrix.allFinite()) {
    result.status = SolverStatus::nonfinite;
    return {};
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(0.5 * (matrix + matrix.transpose()));
  Guesses guesses;
  for (int64_t i = 0; i < ends.large; ++i) guesses.large.push_back(eigen.eigenvectors().col(n - 1 - i));
  for (int64_t i = 0; i < ends.small; ++i) guesses.small.push_back(eigen.eigenvectors().col(i));
  return guesses;
}

void verify_pairs(LinearOperator& op, const Guesses& guesses, const ErrorLimits& limits,
                  TopEigenResult& result) {
  Verifier verifier(op);
  for (const auto& guess : guesses.large) result.largest.push_back(verifier.verify(guess));
  for (const auto& guess : guesses.small) result.smallest.push_back(verifier.verify(guess));
  result.products += verifier.products;
  judge(result, limits);
}

}  // namespace

TopEigenResult spectra_eigenpairs(LinearOperator& op, const TopEigenOptions& options) {
  const Ends ends{std::min(options.count, op.size()), std::min(options.smallest, op.size())};
  const ErrorLimits limits(options, op.dtype());
  const bool dense = op.size() <= std::max(kDenseSize, 2 * (ends.large + ends.small) + 4);
  TopEigenResult result;
  const Guesses guesses =
      dense ? dense_guesses(op, ends, result) : krylov_guesses(op, options, ends, limits, result);
  if (result.status == SolverStatus::nonfinite) return result;
  verify_pairs(op, guesses, limits, result);
  return result;
}

}  // namespace basin
