#include "runs/audit/verdict.h"

#include <gtest/gtest.h>

#include "core/seed.h"

namespace basin {
namespace {

constexpr double kRounding = 1e-6;
const Redrawn kNotDrawn = {{1, 1, 1, 1}, false};

Verdict judged(double before, double after, double uncertainty = NAN,
               UncertaintyKind kind = UncertaintyKind::none, const Redrawn& redrawn = kNotDrawn) {
  return verdict_of({before, uncertainty, kind}, {after, uncertainty, kind}, redrawn, kRounding);
}

TEST(AuditVerdict, NoDrawNoExcuse) {
  EXPECT_EQ(judged(1, 1), Verdict::invariant);
  EXPECT_EQ(judged(0, 0), Verdict::invariant);
  EXPECT_EQ(judged(1, 1 + 9e-7), Verdict::invariant);
  EXPECT_EQ(judged(1, 1 + 2e-6), Verdict::moved);
  // An error over the examples, which are the same ones.
  EXPECT_EQ(judged(1, 1.01, 0.5, UncertaintyKind::standard_error), Verdict::moved);
}

TEST(AuditVerdict, ASolversBoundIsItsOwn) {
  EXPECT_EQ(judged(1, 1.01, 0.006, UncertaintyKind::residual), Verdict::invariant);
  EXPECT_EQ(judged(1, 1.01, 0.004, UncertaintyKind::residual), Verdict::moved);
  EXPECT_EQ(judged(1, 1.01, 0.006, UncertaintyKind::eigenvalue_bound), Verdict::invariant);
  EXPECT_EQ(judged(1, 1.2, 0.4, UncertaintyKind::residual), Verdict::unresolved);
}

TEST(AuditVerdict, DrawsAreComparedWithinTheirError) {
  const Redrawn redrawn = {{0.99, 1.01, 0.99, 1.01}};  // deviation 0.011547, t = 3.18: 0.052
  EXPECT_EQ(judged(1, 1.05, 0.001, UncertaintyKind::standard_error, redrawn), Verdict::within_error);
  EXPECT_EQ(judged(1, 1.055, 0.001, UncertaintyKind::standard_error, redrawn), Verdict::moved);
  // The number's own error where it is the larger one: 2 sqrt(2) 0.03 = 0.085.
  EXPECT_EQ(judged(1, 1.08, 0.03, UncertaintyKind::standard_error, redrawn), Verdict::within_error);
  EXPECT_EQ(judged(1, 1.09, 0.03, UncertaintyKind::standard_error, redrawn), Verdict::moved);
  EXPECT_EQ(judged(1, 1.08, NAN, UncertaintyKind::lower_bound, redrawn), Verdict::moved);
}

// As where the same one of two searches was the best by all four seeds.
TEST(AuditVerdict, SeedsThatAgreeByChanceLeaveTheNumbersOwnError) {
  const Redrawn agree = {{1, 1, 1, 1}, true};
  EXPECT_EQ(judged(1, 1.02, 0.01, UncertaintyKind::lower_bound, agree), Verdict::within_error);
  EXPECT_EQ(judged(1, 1.03, 0.01, UncertaintyKind::lower_bound, agree),
            Verdict::moved);  // 2 sqrt(2) 0.01 = 0.028
  EXPECT_EQ(judged(1, 1.02, NAN, UncertaintyKind::none, agree), Verdict::moved);
  EXPECT_EQ(judged(1, 1.02, NAN, UncertaintyKind::standard_error, agree), Verdict::unresolved);
}

TEST(AuditVerdict, TooWideAnErrorSaysNothing) {
  EXPECT_EQ(judged(1, 1.2, 0.3, UncertaintyKind::standard_error, {{0.7, 1.3, 1, 1}}), Verdict::unresolved);
  EXPECT_EQ(judged(1, 100, 0.3, UncertaintyKind::standard_error, {{0.7, 1.3, 1, 1}}),
            Verdict::moved);  // but that does
  EXPECT_EQ(judged(1, NAN), Verdict::unresolved);
  EXPECT_EQ(judged(NAN, 1), Verdict::unresolved);
  EXPECT_EQ(judged(1, INFINITY), Verdict::unresolved);
  EXPECT_EQ(judged(1, 2, 0.1, UncertaintyKind::standard_error, {{1, NAN, 1, 1}}), Verdict::unresolved);
}

// Normal draws around the same mean: called moved in at most 5 % of cases, the half width being a 95 % one.
TEST(AuditVerdict, CallsANumberThatOnlyDrewAnewMovedInFivePercent) {
  at::Generator generator = make_generator(1);
  constexpr int kRepetitions = 4000;
  int moved = 0;
  for (int i = 0; i < kRepetitions; ++i) {
    const at::Tensor draws = at::empty({5}, at::kDouble).normal_(1, 0.01, generator);
    std::vector<double> redrawn(draws.const_data_ptr<double>(), draws.const_data_ptr<double>() + 4);
    const double after = draws[4].item<double>();
    // `before` itself is one of the four, so the difference is smaller than that of two fresh ones.
    moved += judged(redrawn[0], after, NAN, UncertaintyKind::none, {redrawn}) == Verdict::moved;
  }
  // Standard error sqrt(0.05 0.95 / 4000) = 0.0034; three of them above.
  EXPECT_LE(moved / static_cast<double>(kRepetitions), 0.061);
  EXPECT_GE(moved / static_cast<double>(kRepetitions), 0.01);
}

}  // namespace
}  // namespace basin
