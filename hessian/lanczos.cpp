#include "hessian/lanczos.h"

#include <ATen/ATen.h>

#include <Eigen/Eigenvalues>
#include <filesystem>

#include "core/clock.h"
#include "core/interrupt.h"
#include "core/math/tensor_norms.h"
#include "core/seed.h"
#include "hessian/krylov_basis.h"
#include "hessian/lanczos_state.h"

namespace basin {
namespace {

constexpr int64_t kExhaust = 32;       // unknowns up to which the whole space is spanned
constexpr double kRestartKeeps = 0.4;  // of the room that the wanted vectors leave

struct Ritz {
  Eigen::VectorXd values;     // ascending
  Eigen::MatrixXd vectors;    // in the basis
  Eigen::VectorXd residuals;  // norms
  double radius() const { return values.cwiseAbs().maxCoeff(); }
  /// Eigenpair::value_bound of value i, were its residual `residual`; `noise` is what rounding leaves.
  double value_bound(int64_t i, double residual, double noise) const {
    if (values.size() == 1) return residual;  // a gap is to a value that has been seen
    double gap = INFINITY;
    for (int64_t j = 0; j < values.size(); ++j) {
      if (j != i) gap = std::min(gap, std::abs(values[i] - values[j]) - residuals[j]);
    }
    if (gap <= residual) return residual;
    return std::min(residual, std::max(residual * residual / gap, noise * radius()));
  }
};

int64_t basis_capacity(const LinearOperator& op, const TopEigenOptions& options) {
  const int64_t n = op.size();
  if (n <= kExhaust) return n;
  const int64_t bytes =
      2 * n * static_cast<int64_t>(at::elementSize(op.dtype()));  // a vector and its product
  const int64_t asked =
      options.max_krylov > 0 ? options.max_krylov : std::min<int64_t>(120, kBasisBytes / bytes);
  return std::min(n, std::max(2 * (options.count + options.smallest) + 4, asked));
}

class Lanczos {
 public:
  Lanczos(LinearOperator& op, const TopEigenOptions& options)
      : op_(op),
        options_(options),
        large_(std::min(options.count, op.size())),
        small_(std::min(options.smallest, op.size())),
        limits_(options, op.dtype()),
        basis_(basis_capacity(op, options), op),
        projected_(Eigen::MatrixXd::Zero(basis_.capacity(), basis_.capacity())),
        generator_(make_generator(options.seed)) {}

  TopEigenResult run(KrylovSpace* space) {
    result_.method = "lanczos";
    result_.asymmetry = 0;
    if (!resume()) extend(random_direction());
    while (finite_) {
      const Ritz ritz = project();
      if (gap_ > 0) result_.asymmetry = std::max(result_.asymmetry, gap_ / (ritz.radius() + beta_));
      if (result_.asymmetry > kMostAsymmetry) {
        collect(ritz);
        distrust(ritz);
        break;
      }
      if (finished(ritz)) break;
      keep_state_if_due();
      throw_if_interrupted();
      const at::Tensor direction = next_direction(ritz);
      if (basis_.full()) restart(ritz);
      extend(direction);
    }
    return conclude(space);
  }

 private:
  at::Tensor random_direction() {
    at::Tensor v = at::randn({op_.size()}, generator_, at::kDouble).to(op_.dtype()).to(op_.device());
    v.div_(norm_of(v));
    basis_.project_out(v);
    return v.div_(norm_of(v));
  }

  /// One product: the basis grows by v, the projected matrix by a row and a column.
  void extend(const at::Tensor& v) {
    // A second start breaks the recurrence that coupling_ is read off.
    if (search_until_ > 0) coupling_ = basis_.products_times(v);
    const at::Tensor w = op_.apply(v).detach();
    ++result_.products;
    basis_.append(v, w);
    const int64_t m = basis_.size();
    remainder_ = w.clone();
    Eigen::VectorXd column = basis_.project_out(remainder_);
    column[m - 1] = dot64(v, w);
    projected_.col(m - 1).head(m) = column;
    projected_.row(m - 1).head(m) = column.transpose();
    beta_ = norm_of(remainder_);
    finite_ = std::isfinite(beta_) && column.allFinite();
    if (finite_) watch_symmetry(column);
  }

  bool resume() {
    if (basis_.is_divided()) return false;
    const std::optional<LanczosState> state = read_lanczos_state(options_.state_path, options_.state_key);
    if (!state || state->vectors.size(1) != op_.size() || state->vectors.size(0) > basis_.capacity())
      return false;
    const int64_t m = state->vectors.size(0);
    for (int64_t i = 0; i < m; ++i) basis_.append(state->vectors[i], state->products[i]);
    projected_.topLeftCorner(m, m) = state->projected;
    coupling_ = state->coupling;
    remainder_ = state->remainder.to(op_.device(), op_.dtype());
    beta_ = state->beta;
    result_.asymmetry = state->asymmetry;
    result_.products = state->products_done;
    result_.restarts = state->restarts;
    breakdowns_ = state->breakdowns;
    search_until_ = state->search_until;
    break_off_ = state->break_off;
    generator_.set_state(state->generator);
    return true;
  }

  void keep_state_if_due() {
    if (options_.state_path.empty() || !options_.keeps_state || basis_.is_divided()) return;
    if (seconds_since(kept_at_) < options_.state_seconds && interrupt_signal() == 0) return;
    const int64_t m = basis_.size();
    write_lanczos_state(options_.state_path, options_.state_key,
                        {basis_.vectors(), basis_.products(), remainder_, projected_.topLeftCorner(m, m),
                         coupling_, beta_, result_.asymmetry, result_.products, result_.restarts, breakdowns_,
                         search_until_, break_off_, generator_.get_state()});
    kept_at_ = Clock::now();
  }

  /// The products of the basis before v say what the column above its diagonal must be: coupling_.
  void watch_symmetry(const Eigen::VectorXd& column) {
    const int64_t m = basis_.size();
    gap_ = m > 1 ? (column.head(m - 1) - coupling_).cwiseAbs().maxCoeff() : 0;
    coupling_ = Eigen::VectorXd::Zero(m);
    coupling_[m - 1] = beta_;
  }

  /// Rayleigh-Ritz, with the residual norms that the Krylov relation A V = V T + beta v e_m gives.
  Ritz project() const {
    const int64_t m = basis_.size();
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(projected_.topLeftCorner(m, m));
    return {eigen.eigenvalues(), eigen.eigenvectors(),
            beta_ * eigen.eigenvectors().row(m - 1).transpose().cwiseAbs()};
  }

  std::vector<int64_t> wanted(const Ritz& ritz) const {
    const int64_t m = ritz.values.size();
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < std::min(large_, m); ++i) indices.push_back(m - 1 - i);
    for (int64_t i = 0; i < std::min(small_, m); ++i) indices.push_back(i);
    return indices;
  }

  /// Ratio of the error's estimate to its limit: converged at 1 or below.
  double excess(const Ritz& ritz, int64_t i) const {
    const int64_t m = ritz.values.size();
    const double value = ritz.values[i], radius = ritz.radius();
    const double error =
        limits_.error(ritz.residuals[i], ritz.value_bound(i, ritz.residuals[i], limits_.noise));
    const double limit = i >= m - large_ ? limits_.large(value, radius) : limits_.small(value, radius);
    return limit > 0 ? error / limit : (error > 0 ? INFINITY : 0);
  }

  bool finished(const Ritz& ritz) {
    const int64_t m = basis_.size();
    const bool whole = m == op_.size();
    if (!whole) {
      if (op_.size() <= kExhaust || m < large_ + small_) return false;
      if (limits_.by_value && m == large_ + small_) return false;  // the gap of the last is to one more value
      if (result_.products < search_until_) return false;
      if (broken_down(ritz) && breakdowns_ < std::max(large_, small_)) return false;
      if (!estimates_agree(ritz) && !given_up()) return false;
    }
    collect(ritz);
    if (whole || given_up()) return true;
    return result_.status == SolverStatus::converged && !begin_search();
  }

  bool estimates_agree(const Ritz& ritz) const {
    for (const int64_t i : wanted(ritz)) {
      if (excess(ritz, i) > 1) return false;
    }
    return true;
  }

  /// A second start, random and orthogonal to all that is there, gets as many products as the first took.
  bool begin_search() {
    if (!options_.search_copies || search_until_ > 0) return false;
    search_until_ = 2 * result_.products;
    break_off_ = true;
    return true;
  }

  bool given_up() const { return basis_.full() && result_.restarts >= options_.max_restarts; }

  bool broken_down(const Ritz& ritz) const { return beta_ <= limits_.noise * ritz.radius(); }

  /// The unit vector along which all Ritz residuals lie; a random one where the basis is invariant.
  at::Tensor next_direction(const Ritz& ritz) {
    if (broken_down(ritz) || break_off_) {
      if (!break_off_) ++breakdowns_;
      break_off_ = false;
      coupling_.setZero();  // of an invariant space
      return random_direction();
    }
    return remainder_.div_(beta_);
  }

  /// Keeps the wanted Ritz vectors and some more.
  void restart(const Ritz& ritz) {
    const int64_t m = basis_.size(), spare = m - large_ - small_;
    const int64_t extra = std::max<int64_t>(0, std::min<int64_t>(spare - 2, kRestartKeeps * spare));
    const int64_t extra_large = extra * large_ / (large_ + small_);
    const int64_t top = large_ + extra_large, bottom = small_ + (extra - extra_large);
    std::vector<int64_t> keep;
    for (int64_t i = 0; i < bottom; ++i) keep.push_back(i);
    for (int64_t i = m - top; i < m; ++i) keep.push_back(i);
    basis_.compress(ritz.vectors(Eigen::all, keep));
    projected_.setZero();
    projected_.topLeftCorner(keep.size(), keep.size()) = ritz.values(keep).asDiagonal();
    coupling_ = ritz.vectors(Eigen::all, keep).transpose() * coupling_;
    ++result_.restarts;
  }

  Eigenpair lift(const Ritz& ritz, int64_t i) const {
    const Eigen::MatrixXd y = ritz.vectors.col(i);
    at::Tensor v = basis_.combine_vectors(y)[0], w = basis_.combine_products(y)[0];
    const double length = norm_of(v);
    Eigenpair pair;
    pair.vector = v / length;
    const at::Tensor unit = pair.vector.to(at::kDouble), product = w.to(at::kDouble) / length;
    pair.value = unit.dot(product).item<double>() / unit.dot(unit).item<double>();
    pair.residual = (product - pair.value * unit).norm().item<double>();
    pair.relative_residual = pair.residual == 0 ? 0 : pair.residual / std::abs(pair.value);
    pair.value_bound = ritz.value_bound(i, pair.residual, limits_.noise);
    return pair;
  }

  /// The wanted pairs as they are, with their true residuals, which cost no product.
  void collect(const Ritz& ritz) {
    const int64_t m = basis_.size();
    result_.largest.clear();
    result_.smallest.clear();
    for (int64_t i = 0; i < std::min(large_, m); ++i) result_.largest.push_back(lift(ritz, m - 1 - i));
    for (int64_t i = 0; i < std::min(small_, m); ++i) result_.smallest.push_back(lift(ritz, i));
    result_.status = SolverStatus::converged;
    judge(result_, limits_);
  }

  /// Eigenvalues of what is symmetric up to E lie within |E| of those of its symmetric part.
  void distrust(const Ritz& ritz) {
    result_.status = SolverStatus::not_converged;
    for (auto* end : {&result_.largest, &result_.smallest}) {
      for (Eigenpair& pair : *end) {
        pair.residual = std::max(pair.residual, result_.asymmetry * ritz.radius());
        pair.relative_residual = pair.residual / std::abs(pair.value);
        pair.value_bound = pair.residual;
        pair.converged = false;
      }
    }
  }

  TopEigenResult conclude(KrylovSpace* space) {
    result_.krylov = basis_.size();
    if (!options_.state_path.empty() && options_.keeps_state) std::filesystem::remove(options_.state_path);
    if (!finite_) {
      result_.status = SolverStatus::nonfinite;
      result_.largest.clear();
      result_.smallest.clear();
      return result_;
    }
    if (space) {
      *space = {basis_.vectors(), basis_.products(), projected_.topLeftCorner(basis_.size(), basis_.size()),
                /*whole=*/result_.restarts == 0};
    }
    return result_;
  }

  LinearOperator& op_;
  const TopEigenOptions& options_;
  int64_t large_, small_;
  ErrorLimits limits_;
  KrylovBasis basis_;
  Eigen::MatrixXd projected_;  // V A V^T; the leading size() x size() block counts
  Eigen::VectorXd coupling_;   // of the basis with the direction that comes next, as its own products have it
  at::Generator generator_;
  at::Tensor remainder_;                       // (I - V^T V) A v_m
  double beta_ = 0;                            // |remainder_|
  double gap_ = 0;                             // of the last column from what symmetry has it be
  int64_t breakdowns_ = 0, search_until_ = 0;  // the latter in products
  bool break_off_ = false;                     // the next direction is random
  bool finite_ = true;
  Clock::time_point kept_at_ = Clock::now();
  TopEigenResult result_;
};

}  // namespace

TopEigenResult lanczos_eigenpairs(LinearOperator& op, const TopEigenOptions& options, KrylovSpace* space) {
  return Lanczos(op, options).run(space);
}

}  // namespace basin
