// The table's words and numbers, from rows made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/table.h"

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
  EXPECT_THAT(line, HasSubstr("| 1 diverged, 2 finished |"));
  EXPECT_THAT(line, HasSubstr("| 51.0 ± 1.0 (2) |"));
}

TEST(Table, ALineWithoutComparableRunsSaysWhy) {
  std::vector<SweepRow> rows = {row("B", 65536, 1, "target_not_reached", 0.3),
                                row("B", 1024, 1, "finished", 0.44)};
  rows[1].columns.emplace_back("overshot", true);
  const std::string table = table_markdown(rows);
  EXPECT_THAT(line_of(table, "| 65536"), HasSubstr("*target_not_reached*"));
  EXPECT_THAT(line_of(table, "| 65536"), Not(HasSubstr("30")));
  EXPECT_THAT(line_of(table, "| 1024"), HasSubstr("| 1 overshot | *overshot* |"));
  EXPECT_THAT(line_of(table, "| 1024"), Not(HasSubstr("44")));
}

TEST(Table, AProbeValueCountsOnlyWithStatusOk) {
  std::vector<SweepRow> rows = {row("B", 256, 1, "finished", 0.5), row("B", 256, 2, "finished", 0.5)};
  for (int i = 0; i < 2; ++i) {
    const std::string name = "probe.end.top_eigenvalues.lambda_1";
    rows[i].columns.emplace_back(name, i == 0 ? 12.5 : 99.0);
    rows[i].columns.emplace_back(name + ".status", std::string(i == 0 ? "ok" : "not_converged"));
  }
  EXPECT_THAT(line_of(table_markdown(rows), "| 256"), HasSubstr("| 12.5 (1), 1 not converged |"));
}

TEST(Table, ProtocolsAreNeverMixed) {
  const std::string table =
      table_markdown({row("A-epochs", 256, 1, "finished", 0.5), row("B", 256, 1, "finished", 0.4)});
  EXPECT_THAT(table, HasSubstr("## Protocol A-epochs"));
  EXPECT_THAT(table, HasSubstr("## Protocol B"));
  EXPECT_THAT(table, HasSubstr("cifar10-5k (official pixels)"));
}

}  // namespace
}  // namespace basin
