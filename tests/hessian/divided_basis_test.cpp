// A Krylov basis that ranks divide spans what one process's spans, but for the order of sums.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <mutex>

#include "hessian/krylov_basis.h"
#include "hessian/lanczos.h"
#include "hessian/operators.h"
#include "hessian/quadrature.h"
#include "tests/support/rank_threads.h"

namespace basin {
namespace {

using ::testing::Each;
using testing::on_ranks;

constexpr int64_t kSize = KrylovBasis::kDividedFrom + 3;  // uneven shares
constexpr double kOtherOrder = 1e-12;                     // float64 sums in another order

/// A known diagonal, on every rank.
class Diagonal final : public LinearOperator {
 public:
  explicit Diagonal(const RankGroup& ranks) : ranks_(ranks) {
    diagonal_ = at::linspace(-1, 5, kSize, at::kDouble);
    diagonal_[17].fill_(10);
    diagonal_[kSize - 2].fill_(8);
    diagonal_[kSize / 2].fill_(-4);
  }
  int64_t size() const override { return kSize; }
  at::ScalarType dtype() const override { return at::kDouble; }
  at::Device device() const override { return at::kCPU; }
  at::Tensor apply(const at::Tensor& x) override { return diagonal_ * x; }
  const RankGroup& ranks() const override { return ranks_; }

 private:
  const RankGroup& ranks_;
  at::Tensor diagonal_;
};

at::Tensor start_of(int64_t n) { return at::linspace(-1, 2, n, at::kDouble).cos(); }

/// Eigenvalues, residuals, a vector, and a quadrature's first moments; restarts, a second start and a derived operator among them.
std::map<std::string, at::Tensor> found_on(const RankGroup& ranks) {
  Diagonal diagonal(ranks);
  AffineOperator op(diagonal, 2, 1);
  KrylovSpace space;
  const TopEigenOptions options{.count = 2,
                                .smallest = 1,
                                .tolerance = 1e-9,
                                .max_krylov = 14,
                                .max_restarts = 200,
                                .seed = 3,
                                .search_copies = true};
  const TopEigenResult top = lanczos_eigenpairs(op, options, &space);
  const Quadrature quadrature = lanczos_quadrature(op, start_of(kSize), 8, {}, nullptr);
  const auto numbers = [](std::vector<double> values) { return at::tensor(values, at::kDouble); };
  std::map<std::string, at::Tensor> found;
  found["values"] = numbers({top.largest[0].value, top.largest[1].value, top.smallest[0].value});
  found["vector"] = top.largest[0].vector.abs();
  found["moments"] = numbers({quadrature.moment(0), quadrature.moment(1), quadrature.moment(2)});
  found["orthonormal"] = space.vectors.matmul(space.vectors.t());
  found["restarts"] = numbers({top.restarts > 0 ? 1.0 : 0.0});
  return found;
}

TEST(DividedBasis, FindsWhatOneProcessFinds) {
  const std::map<std::string, at::Tensor> alone = found_on(RankGroup::alone());
  EXPECT_EQ(alone.at("restarts").item<double>(), 1);
  for (const int ranks : {2, 3}) {
    std::mutex mutex;
    std::map<int, std::map<std::string, at::Tensor>> by_rank;
    ASSERT_THAT(on_ranks(ranks,
                         [&](RankGroup& group) {
                           auto mine = found_on(group);
                           const std::lock_guard lock(mutex);
                           by_rank[group.rank()] = std::move(mine);
                         }),
                Each(""));
    // 21, 17 and -7 are exact: 2 x + 1 of what stands out.
    EXPECT_TRUE(at::allclose(by_rank[0].at("values"), at::tensor({21.0, 17.0, -7.0}, at::kDouble), 0, 1e-9));
    for (const auto& [name, expected] : alone) {
      SCOPED_TRACE(fmt::format("{} on {} ranks", name, ranks));
      const at::Tensor first = by_rank[0].at(name);
      // A vector converges to 1e-9 of its own; the way there differs by rounding.
      const double bound = name == "vector" ? 1e-7 : name == "orthonormal" ? 1e-11 : 10 * kOtherOrder;
      if (first.sizes() == expected.sizes())
        EXPECT_LE((first - expected).abs().max().item<double>(),
                  bound * (1 + expected.norm().item<double>()));
      else
        EXPECT_EQ(name, "orthonormal");
      for (const auto& [rank, numbers] : by_rank) EXPECT_TRUE(numbers.at(name).equal(first)) << rank;
    }
  }
}

// By hand: what a rank holds, and sums over all columns.
TEST(DividedBasis, HoldsItsColumns) {
  EXPECT_THAT(
      on_ranks(2,
               [](RankGroup& ranks) {
                 const Diagonal op(ranks);
                 KrylovBasis basis(3, op);
                 if (!basis.is_divided() || basis.numbers_here() != 2 * 3 * ranks.share(kSize).count())
                   throw std::runtime_error("size");
                 const at::Tensor e = at::zeros({kSize}, at::kDouble), f = at::zeros({kSize}, at::kDouble);
                 e[5].fill_(1);
                 f[kSize - 1].fill_(1);
                 basis.append(e, 3 * e);
                 basis.append(f, 4 * f);
                 at::Tensor x = at::ones({kSize}, at::kDouble);
                 const Eigen::VectorXd coefficients = basis.project_out(x);
                 if (coefficients != Eigen::Vector2d(1, 1)) throw std::runtime_error("coefficients");
                 if (x.sum().item<double>() != kSize - 2 || x[5].item<double>() != 0)
                   throw std::runtime_error("rest");
                 if (basis.products_times(2 * e + f) != Eigen::Vector2d(6, 4))
                   throw std::runtime_error("products");
                 if (!basis.combine_vectors(Eigen::Vector2d(0.5, -2))[0].equal(0.5 * e - 2 * f))
                   throw std::runtime_error("combined");
                 if (!basis.products().equal(at::stack({3 * e, 4 * f}))) throw std::runtime_error("whole");
                 Eigen::MatrixXd swap(2, 1);
                 swap << 0, 1;
                 basis.compress(swap);
                 if (!basis.vectors().equal(f.unsqueeze(0))) throw std::runtime_error("compressed");
               }),
      Each(""));
}

TEST(DividedBasis, SmallOnesAreNot) {
  EXPECT_THAT(on_ranks(2,
                       [](RankGroup& ranks) {
                         Diagonal large(ranks);
                         RestrictedOperator op(large, at::arange(100, at::kLong));
                         if (KrylovBasis(3, op).is_divided()) throw std::runtime_error("divided");
                       }),
              Each(""));
}

}  // namespace
}  // namespace basin
