// What a row keeps of a run's long tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "io/run_file.h"
#include "sweep/collect/rows.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

constexpr int64_t kChecks = 7001;

/// One evaluation for each update from 0 on, with a loss that falls from 7 by 0.001 each, but for a first one that is not known.
RunRecord long_run() {
  RunRecord record;
  record.header.run_id = "aaaaaaaaaaaa";
  record.header.config_id = "c0ffee";
  record.header.options = {{"batch_size", int64_t{256}},
                           {"learning_rate", 0.1},
                           {"target_loss", 0.4995},
                           {"loss_levels", std::vector<double>{2.0011, 7.5, -1}}};
  record.status = RunState::finished;
  Table eval{"eval",
             "evaluation",
             {{"update", "1", "updates done", "updates", 1, {}},
              {"train_loss", "nat", "training loss", "eval-loss", 1, {}}},
             {}};
  for (int64_t update = 0; update < kChecks; ++update) {
    const double loss = 7 - 0.001 * static_cast<double>(update);
    eval.rows.insert(eval.rows.end(), {static_cast<double>(update), update == 0 ? NAN : loss});
  }
  record.tables["eval"] = eval;
  return record;
}

std::vector<double> updates_of_evaluations(const RunRecord& record) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "runs/aaaaaaaaaaaa");
  write_run_file(folder / "runs/aaaaaaaaaaaa/run.h5", record);
  return read_sweep_rows(folder.path()).at(0).eval.column("update");
}

TEST(SweepRows, KeepTheEvaluationsAtWhichARunPassedALoss) {
  const std::vector<double> kept = updates_of_evaluations(long_run());
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  // 2.0011 is passed at update 4999, the target at 6501, 7.5 at the first loss that is known, -1 never.
  for (const double update : {4998., 4999., 6500., 6501., 0., 1., 7000.}) {
    EXPECT_EQ(std::count(kept.begin(), kept.end(), update), 1) << update;
  }
  EXPECT_GE(kept.size(), static_cast<size_t>(kEvalRows));
  EXPECT_LE(kept.size(), static_cast<size_t>(kEvalRows + 6));
}

TEST(SweepRows, WithoutALossOfTheTrainingSetTheEvaluationsAreThinnedAlone) {
  RunRecord record = long_run();
  record.tables.at("eval").columns[1].name = "test_loss";
  EXPECT_EQ(updates_of_evaluations(record).size(), static_cast<size_t>(kEvalRows));
}

}  // namespace
}  // namespace basin
