// The table's words and numbers, from rows made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sweep/collect/table.h"

namespace basin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

SweepRow row(const std::string& protocol, int64_t batch, int64_t seed, const std::string& status,
             double test_acc) {
  SweepRow r;
  r.run_id = fmt::format("{}-{}-{}", protocol, batch, seed);
  r.columns = {{"run_id", r.run_id},
               {"config_id", fmt::format("{}-{}", protocol, batch)},
               {"status", status},
               {"optimizer", std::string("lamb")},
               {"protocol", protocol},
               {"batch_size", batch},
               {"seed", seed},
               {"learning_rate", 0.02},
               {"test_acc", test_acc},
               {"train_loss", 1.0},
               {"updates", int64_t{40}},
               {"dataset.name", std::string("cifar10-5k")},
               {"dataset.pixels", std::string("official")}};
  return r;
}

/// The line of the table that holds `start`.
std::string line_of(const std::string& table, const std::string& start) {
  const size_t begin = table.find(start);
  return begin == std::string::npos ? "" : table.substr(begin, table.find('\n', begin) - begin);
}

TEST(MeanAndError, IsTheTextbookFormula) {
  // Mean 4, sample variance 4, standard error 2/sqrt(3) = 1.1547.
  EXPECT_EQ(mean_and_error({2, 4, 6}), "4.0 ± 1.2 (3)");
  EXPECT_EQ(mean_and_error({51.25}), "51.25 (1)");
  EXPECT_EQ(mean_and_error({0.5, NAN, 0.7}), "0.60 ± 0.10 (2)");
  EXPECT_EQ(mean_and_error({NAN}), "–");
  EXPECT_EQ(mean_and_error({}), "–");
}

TEST(Table, MeansHoldFinishedRunsAlone) {
  std::vector<SweepRow> rows = {row("A-epochs", 256, 1, "finished", 0.50),
                                row("A-epochs", 256, 2, "finished", 0.52),
                                row("A-epochs", 256, 3, "diverged", 0.10)};
  const std::string line = line_of(table_markdown(rows), "| 256");
  EXPECT_THAT(line, HasSubstr("| 2 of 3 finished, 1 of 3 diverged |"));
  EXPECT_THAT(line, HasSubstr("| 51.0 ± 1.0 (2) |"));
}

TEST(Table, ALineWithoutComparableRunsSaysWhy) {
  std::vector<SweepRow> rows = {row("B", 65536, 1, "target_not_reached", 0.3),
                                row("B", 1024, 1, "finished", 0.44)};
  rows[1].columns.emplace_back("overshot", true);
  const std::string table = table_markdown(rows);
  EXPECT_THAT(line_of(table, "| 65536"), HasSubstr("| 1 missed the target | *missed the target* |"));
  EXPECT_THAT(line_of(table, "| 65536"), Not(HasSubstr("30")));
  EXPECT_THAT(line_of(table, "| 1024"), HasSubstr("| 1 overshot the target | *overshot the target* |"));
  EXPECT_THAT(line_of(table, "| 1024"), Not(HasSubstr("44")));
}

// Three lines of one batch size, optimiser and rate said nothing of what differs.
TEST(Table, ArmsOfOneBatchSizeHaveAColumn) {
  std::vector<SweepRow> rows;
  for (const auto& [ghost, kind] : {std::pair<int64_t, const char*>{0, "none"}, {25, "none"}, {0, "sam"}}) {
    SweepRow& arm = rows.emplace_back(row("B", 5000, 1, "finished", 0.5));
    arm.columns[1].second = fmt::format("{}-{}", ghost, kind);
    arm.columns.emplace_back("ghost_batch", ghost);
    arm.columns.emplace_back("perturbation.kind", std::string(kind));
    arm.columns.emplace_back("loss_levels", std::vector<double>{1.5});
  }
  const std::string table = table_markdown(rows);
  EXPECT_THAT(
      table,
      HasSubstr("| batch size | optimiser | ghost_batch | perturbation.kind | learning rate | runs |"));
  EXPECT_THAT(table, HasSubstr("| 5000 | lamb | 0 | none | 0.02 | 1 finished |"));
  EXPECT_THAT(table, HasSubstr("| 5000 | lamb | 25 | none | 0.02 | 1 finished |"));
  EXPECT_THAT(table, HasSubstr("| 5000 | lamb | 0 | sam | 0.02 | 1 finished |"));
  EXPECT_THAT(table, Not(HasSubstr("loss_levels")));
  EXPECT_THAT(table_markdown({rows[0]}), HasSubstr("| batch size | optimiser | learning rate | runs |"));
}

// Under protocol B each seed ends after epochs of its own; they are one setting.
TEST(Table, WhatWasAskedForTellsSettingsApartAndNotWhatWasDone) {
  std::vector<SweepRow> rows = {row("B", 32, 1, "finished", 0.5), row("B", 32, 2, "finished", 0.6)};
  for (size_t i = 0; i < 2; ++i) {
    rows[i].columns.emplace_back("epochs", 18.5 + static_cast<double>(i));
    rows[i].columns.emplace_back("option.epochs", 8.0);
  }
  EXPECT_THAT(table_markdown(rows, {"epochs"}), HasSubstr("| 55.0 ± 5.0 (2) |"));
}

TEST(Table, SeedsThatBranchFromTheirOwnParentsAreOneLine) {
  std::vector<SweepRow> rows;
  for (const int64_t seed : {1, 2}) {
    rows.push_back(row("B", 256, seed, "finished", 0.5));
    SweepRow& branch = rows.emplace_back(row("B", 256, seed, "finished", 0.6));
    branch.columns[1].second = std::string("branches");
    branch.columns.emplace_back("branch.from", rows[rows.size() - 2].run_id);
    branch.columns.emplace_back("branch.setting", std::string("the parents"));
  }
  EXPECT_THAT(line_of(table_markdown(rows), "| 256 | lamb | the parents |"),
              HasSubstr("| 2 finished | 60 ± 0 (2) |"));
}

TEST(Table, SaysHowManySeedsAreLeftOutAndWhy) {
  std::vector<SweepRow> rows;
  for (int seed = 1; seed <= 5; ++seed) {
    rows.push_back(row("B", 65536, seed, seed == 3 ? "finished" : "target_not_reached", 0.4));
  }
  EXPECT_THAT(line_of(table_markdown(rows), "| 65536"),
              HasSubstr("| 1 of 5 finished, 4 of 5 missed the target |"));
  rows[0].columns[2].second = std::string("queued");
  rows[1].columns[2].second = std::string("failed");
  EXPECT_THAT(line_of(table_markdown(rows), "| 65536"),
              HasSubstr("| 1 of 5 finished, 1 of 5 failed, 2 of 5 missed the target, 1 of 5 not begun |"));
}

Quantity quantity(const std::string& name, double value, ProbeStatus status,
                  UncertaintyKind kind = UncertaintyKind::none, double uncertainty = NAN) {
  Quantity q;
  q.name = name;
  q.definition = "definition-of-" + name;
  q.uncertainty_kind = kind;
  q.status = status;
  q.value = {value};
  q.uncertainty = {uncertainty};
  return q;
}

ProbeRecord probe(const std::string& name, const std::vector<Quantity>& quantities, int64_t examples = 100) {
  ProbeRecord record;
  record.probe = name;
  record.checkpoint = "end";
  record.attributes = {{"n_examples", examples}, {"subset_hash", std::string("abc")}};
  record.quantities = quantities;
  return record;
}

SweepRow run_with(int seed, const ProbeRecord& record) {
  SweepRow r = row("B", 256, seed, "finished", 0.5);
  r.probes = {record};
  return r;
}

std::string table_of(const std::vector<ProbeRecord>& records) {
  std::vector<SweepRow> rows;
  for (const ProbeRecord& record : records)
    rows.push_back(run_with(static_cast<int>(rows.size()) + 1, record));
  return line_of(table_markdown(rows), "| 256");
}

ProbeRecord eigenvalue(double value, ProbeStatus status, int64_t examples = 100) {
  return probe("top_eigenvalues", {quantity("lambda", value, status, UncertaintyKind::residual, 0.25)},
               examples);
}

TEST(Table, AProbeValueCountsOnlyWithStatusOk) {
  EXPECT_THAT(table_of({eigenvalue(12, ProbeStatus::ok), eigenvalue(14, ProbeStatus::ok),
                        eigenvalue(99, ProbeStatus::not_converged)}),
              HasSubstr("| 13.0 ± 1.0 (2), 1 not converged |"));
}

TEST(Table, OneRunShowsItsOwnUncertainty) {
  EXPECT_THAT(table_of({eigenvalue(12.5, ProbeStatus::ok)}), HasSubstr("| 12.5 (1; residual 0.25) |"));
  EXPECT_THAT(table_of({eigenvalue(12.5, ProbeStatus::ok), eigenvalue(99, ProbeStatus::not_converged)}),
              HasSubstr("| 12.5 (1; residual 0.25), 1 not converged |"));
}

TEST(Table, OtherExamplesAreNeverPooled) {
  EXPECT_THAT(table_of({eigenvalue(12, ProbeStatus::ok, 100), eigenvalue(14, ProbeStatus::ok, 200)}),
              HasSubstr("| 2 settings, not pooled |"));
}

ProbeRecord noise(double tr_sigma, double g2, ProbeStatus status, int64_t examples = 100) {
  Quantity ratio = quantity("b_simple", tr_sigma / g2, status, UncertaintyKind::standard_error, 1);
  ratio.ci_low = {4};
  ratio.ci_high = {9};
  return probe("noise_scale",
               {ratio, quantity("g2", g2, status), quantity("tr_sigma", tr_sigma, ProbeStatus::ok)},
               examples);
}

TEST(Table, NoiseScaleIsThatOfTheTrainingSetWhereItWasMeasured) {
  const auto with_finite = [](double scale) {
    ProbeRecord record = noise(10, 2, ProbeStatus::ok);
    record.quantities.push_back(
        quantity("b_simple_finite", scale / 4, ProbeStatus::ok, UncertaintyKind::standard_error, 1));
    record.quantities.push_back(quantity("g2_finite", 4, ProbeStatus::ok));
    record.quantities.push_back(quantity("tr_sigma_finite", scale, ProbeStatus::ok));
    return record;
  };
  // Σ tr Σ/Σ |G|² over two runs: (12 + 20)/8 = 4 for the set, (10 + 10)/4 = 5 for the population.
  const std::string text = table_of({with_finite(12), with_finite(20)});
  EXPECT_THAT(text, HasSubstr("| 4 ["));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("| 5 [")));
  EXPECT_THAT(table_of({noise(10, 2, ProbeStatus::ok), noise(10, 2, ProbeStatus::ok)}), HasSubstr("| 5 ["));
}

TEST(PooledRatio, IsTheRatioOfMeansWithFiellersInterval) {
  // tr = 10, 12, 14 and |G|^2 = 1.0, 1.2, 1.1: means 12 and 1.1, ratio 120/11. Variances of the means 4/3 and 0.01/3,
  // covariance 0.1/3; t for 2 degrees of freedom 4.302653, t^2 = 18.512821. With these Fieller's quadratic
  // a r^2 - 2 b r + c has a = 1.21 - 0.061709 = 1.148291, b = 13.2 - 0.617094 = 12.582906, c = 144 - 24.683761 = 119.316239:
  // r = (12.582906 -+ sqrt(158.329523 - 137.009716)) / 1.148291 = 6.936892 and 14.978999.
  const PooledRatio pooled = pooled_ratio({10, 12, 14}, {1.0, 1.2, 1.1});
  EXPECT_TRUE(pooled.resolved);
  EXPECT_EQ(pooled.runs, 3);
  EXPECT_NEAR(pooled.value, 120.0 / 11, 1e-12);
  EXPECT_NEAR(pooled.low, 6.936892, 2e-6);  // the hand calculation carries six decimals
  EXPECT_NEAR(pooled.high, 14.978999, 2e-6);
}

TEST(PooledRatio, IsNotResolvedWhereTheMeanGradientIsNot) {
  // Mean 1, standard error 0.5, t for one degree of freedom 12.7: the mean may be anything.
  EXPECT_FALSE(pooled_ratio({10, 10}, {0.5, 1.5}).resolved);
  EXPECT_FALSE(pooled_ratio({10, 10, 10}, {-1.0, -1.1, -0.9}).resolved);
  EXPECT_TRUE(pooled_ratio({10, 10, 10}, {1.0, 1.1, 0.9}).resolved);
}

TEST(Table, TheNoiseScaleCountsUnresolvedRunsToo) {
  // With the two resolved runs alone it would be 22/2.2 = 10; the third has |G|^2 = 0.8 and doubles nothing.
  const std::string line = table_of({noise(10, 1.0, ProbeStatus::ok), noise(12, 1.2, ProbeStatus::ok),
                                     noise(11, 0.8, ProbeStatus::not_resolved)});
  EXPECT_THAT(line, HasSubstr("| 11 ["));  // 33 / 3
  EXPECT_THAT(line, HasSubstr("] (3) |"));
  EXPECT_THAT(table_of({noise(10, 1.0, ProbeStatus::ok), noise(12, -0.9, ProbeStatus::not_resolved)}),
              HasSubstr("| not resolved (2) |"));
  EXPECT_THAT(table_of({noise(12, 2, ProbeStatus::ok)}), HasSubstr("| 6 [4, 9] (1) |"));
  EXPECT_THAT(table_of({noise(12, 2, ProbeStatus::not_resolved)}), HasSubstr("| not resolved (1) |"));
  EXPECT_THAT(table_of({noise(10, 1, ProbeStatus::ok), noise(10, 1, ProbeStatus::ok, 200)}),
              HasSubstr("| 2 settings, not pooled |"));
  EXPECT_THAT(table_of({noise(10, 1, ProbeStatus::ok), noise(NAN, NAN, ProbeStatus::nonfinite)}),
              HasSubstr("| 10 [4, 9] (1), 1 nonfinite |"));
}

TEST(Table, ProtocolsAreNeverMixed) {
  const std::string table =
      table_markdown({row("A-epochs", 256, 1, "finished", 0.5), row("B", 256, 1, "finished", 0.4)});
  EXPECT_THAT(table, HasSubstr("## Protocol A-epochs"));
  EXPECT_THAT(table, HasSubstr("## Protocol B"));
  EXPECT_THAT(table, HasSubstr("cifar10-5k (official), "));
}

}  // namespace
}  // namespace basin
