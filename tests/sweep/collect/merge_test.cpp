// Which of a run's copies is taken, and which copies don't go together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "sweep/collect/merge.h"

namespace basin {
namespace {

using ::testing::HasSubstr;

SweepRow run(const std::string& id, const std::string& status, double loss, const std::string& data = "d1") {
  SweepRow row;
  row.run_id = id;
  row.columns = {{"run_id", id},
                 {"status", status},
                 {"batch_size", int64_t{8}},
                 {"data.set", std::string("synthetic")},
                 {"train_loss", loss},
                 {"seconds", static_cast<double>(data.size()) + loss},
                 {"dataset.sha256", data}};
  row.eval = {"eval", "", {{"loss", "nat", "", "", 1, {}}, {"seconds", "s", "", "", 1, {}}}, {loss, NAN}};
  return row;
}

SweepRow probed(SweepRow row, const std::string& probe, double value) {
  ProbeRecord record;
  record.probe = probe;
  record.checkpoint = "end";
  record.quantities = {
      {.name = "q", .definition = "q", .units = "1", .long_name = "q", .value = {value}, .uncertainty = {0}}};
  row.probes.push_back(record);
  return row;
}

std::vector<SweepRow> merge(SweepRow a, SweepRow b) {
  return merged({{"A", "", {std::move(a)}}, {"B", "", {std::move(b)}}});
}

std::string refusal(const SweepRow& a, const SweepRow& b) {
  try {
    merge(a, b);
  } catch (const IoError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Merged, OneSourceIsLeftAsItIs) {
  const std::vector<SweepRow> rows = merged({{"A", "", {run("b", "finished", 1), run("a", "queued", 2)}}});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].run_id, "a");
  EXPECT_EQ(rows[0].find("source"), nullptr);
}

TEST(Merged, TakesTheRunThatHasEnded) {
  EXPECT_EQ(merge(run("a", "interrupted", 1), run("a", "finished", 2)).at(0).text("source"), "B");
  EXPECT_EQ(merge(run("a", "diverged", 1), run("a", "failed", 2)).at(0).text("source"), "A");
}

TEST(Merged, TakesTheRunWithMoreProbes) {
  const SweepRow plain = run("a", "finished", 1);
  EXPECT_EQ(merge(plain, probed(plain, "p", 3)).at(0).text("source"), "B");
  EXPECT_EQ(merge(probed(plain, "p", 3), probed(plain, "p", 3)).at(0).text("source"), "A");
}

TEST(Merged, RefusesWhatIsNotTheSameRun) {
  const SweepRow a = run("a", "finished", 1);
  EXPECT_THAT(refusal(a, run("a", "finished", std::nextafter(1, 2))),
              HasSubstr("run a: train_loss = 1 in A and 1.0000000000000002 in B"));
  EXPECT_THAT(refusal(a, run("a", "diverged", 1)),
              HasSubstr("status = \"finished\" in A and \"diverged\" in B"));
  SweepRow curve = a;
  curve.eval.rows[0] = 2;
  EXPECT_THAT(refusal(a, curve), HasSubstr("its table \"eval\" is another in A than in B"));
  curve = a;
  curve.eval.rows[1] = 2;  // seconds
  EXPECT_EQ(merge(a, curve).size(), 1u);
  SweepRow right = a, wrong = a;
  right.outcomes["test"].correct = {1};
  wrong.outcomes["test"].correct = {0};
  EXPECT_THAT(refusal(right, wrong), HasSubstr("other test images are right"));
  EXPECT_EQ(merge(right, a).size(), 1u);  // an older program kept none
  EXPECT_THAT(refusal(probed(a, "p", 1), probed(a, "p", 2)), HasSubstr("the probe p on end"));
  EXPECT_THAT(refusal(probed(a, "p", 1), probed(a, "q", 1)), HasSubstr("that the other lacks"));
}

TEST(Merged, RefusesRunsOfOtherDataUnderTheSameOptions) {
  EXPECT_EQ(merge(run("a", "finished", 1), run("b", "finished", 1)).size(), 2u);
  EXPECT_THAT(refusal(run("a", "finished", 1), run("b", "finished", 1, "d2")),
              HasSubstr("run a in A was trained on data with SHA-256 d1, run b in B on d2"));
}

SweepRow with(SweepRow row, const std::string& column, OptionValue value) {
  row.columns.emplace_back(column, std::move(value));
  return row;
}

SweepRow read_from(SweepRow row, const std::string& path) { return with(std::move(row), "data.path", path); }

// Where the images lay is no part of a run; which they were is.
TEST(Merged, DataAreToldApartByWhatTheyAreAndNotByTheirPath) {
  const SweepRow a = run("a", "finished", 1);
  EXPECT_THAT(refusal(read_from(a, "/x"), read_from(run("b", "finished", 1, "d2"), "/y")),
              HasSubstr("run a in A was trained on data with SHA-256 d1, run b in B on d2"));
  EXPECT_EQ(merge(read_from(a, "/x"), read_from(run("b", "finished", 1), "/y")).size(), 2u);
  EXPECT_EQ(merge(read_from(a, "/x"), read_from(a, "/y")).size(), 1u);
  EXPECT_THAT(refusal(read_from(a, "/x"), read_from(run("a", "finished", 1, "d2"), "/y")),
              HasSubstr("run a: dataset.sha256 = \"d1\" in A and \"d2\" in B"));
  // Other options of the data, so other data.
  EXPECT_EQ(merge(with(a, "data.classes", int64_t{2}),
                  with(run("b", "finished", 1, "d2"), "data.classes", int64_t{3}))
                .size(),
            2u);
}

TEST(Merged, CopiesMayDifferInTimesAndInHowTheyWereComputedAlone) {
  const SweepRow a = run("a", "finished", 1);
  for (const char* column : {"update_seconds", "images_per_second", "rank_wait_share",
                             "rank_bytes_per_update", "worker_wait_share", "checkpoint_seconds"})
    EXPECT_EQ(merge(with(a, column, 0.25), with(a, column, 0.5)).size(), 1u) << column;
  EXPECT_EQ(merge(with(a, "rank_wait_share", 0.25), a).size(), 1u) << "a copy of one process has none";
  for (const char* column : {"secondary_loss", "staleness_mean", "momentum_of_second_step"})
    EXPECT_THAT(refusal(with(a, column, 0.25), with(a, column, 0.5)),
                HasSubstr(std::string(column) + " = 0.25 in A and 0.5 in B"));
}

}  // namespace
}  // namespace basin
