// RecordedOrder against an order of arrivals written down by hand.
#include "trainers/workers/recorded_order.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "io/run_file.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "trainers/tables.h"
#include "trainers/workers/stale_record.h"

namespace basin::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two workers, of which the second is slow, and then dies; batch 3 was under way with it.
const std::vector<Arrival> kOrder = {{.worker = 0, .batch = 0, .staleness = 0, .lead = 1, .time = 0.5},
                                     {.worker = 0, .batch = 2, .staleness = 0, .lead = 2, .time = 1.0},
                                     {.worker = 1, .batch = 1, .staleness = 2, .lead = -1, .time = 1.25},
                                     {.worker = 0, .batch = 4, .staleness = 1, .lead = 2, .time = 1.5},
                                     {.worker = 0, .batch = 5, .staleness = 0, .lead = 3, .time = 2.0}};

class Recorded : public ::testing::Test {
 protected:
  std::string written(const std::vector<Arrival>& order, const std::string& name = "run.h5") const {
    StaleRecord seen("s");
    Table train{"train", "updates", {column("update", "1", "update", "from 1")}, {}};
    for (const Column& column : seen.columns()) train.columns.push_back(column);
    for (size_t i = 0; i < order.size(); ++i) {
      seen.note(order[i]);
      train.rows.push_back(static_cast<double>(i + 1));
      seen.append(train.rows);
    }
    RunRecord record;
    record.header.run_id = "0123456789ab";
    record.tables["train"] = train;
    write_run_file(folder_ / name, record);
    return folder_ / name;
  }
  TemporaryFolder folder_;
};

TEST_F(Recorded, IsThatOrder) {
  written(kOrder);
  RecordedOrder order(folder_.path(), 5, 2);
  EXPECT_EQ(order.time_units(), "s");
  std::vector<int64_t> workers, versions, batches, leads, under_way;
  for (int64_t update = 1; update <= 5; ++update) {
    const StaleStep& step = order.next();
    workers.push_back(step.worker);
    versions.push_back(step.version);
    batches.push_back(step.batch);
    leads.push_back(order.lead());
    under_way.push_back(order.steps_from(0));
    order.advance(update);
  }
  EXPECT_THAT(workers, ElementsAre(0, 0, 1, 0, 0));
  EXPECT_THAT(versions, ElementsAre(0, 1, 0, 2, 4));
  EXPECT_THAT(batches, ElementsAre(0, 2, 1, 4, 5));
  EXPECT_THAT(leads, ElementsAre(1, 2, -1, 2, 3));
  EXPECT_THAT(under_way, ElementsAre(2, 1, 1, 0, 0)) << "of the first weights";
}

// What is to be kept at any moment: versions that there are already, and that a later update is of.
TEST_F(Recorded, KnowsWhichVersionsAreStillTaken) {
  RecordedOrder order(written(kOrder), 5, 2);
  EXPECT_THAT(order.versions(), ElementsAre(0));
  order.advance(1);
  EXPECT_THAT(order.versions(), ElementsAre(0, 1));
  order.advance(2);
  EXPECT_THAT(order.versions(), ElementsAre(0, 2));
  order.advance(3);
  EXPECT_THAT(order.versions(), ElementsAre(2));
}

TEST_F(Recorded, GoesOnFromACheckpoint) {
  RecordedOrder order(written(kOrder), 5, 2), again(folder_.path(), 5, 2);
  order.advance(1), order.advance(2);
  again.load_state(order.state());
  EXPECT_EQ(again.next().batch, 1);
  EXPECT_EQ(again.versions(), order.versions());

  std::vector<Arrival> other = kOrder;
  other[4].batch = 6;
  RecordedOrder changed(written(other, "other.h5"), 5, 2);
  EXPECT_THAT(message_of<IoError>([&] { changed.load_state(order.state()); }),
              HasSubstr("other.h5 has another order of arrivals than the checkpoint"));
}

TEST_F(Recorded, RefusesWhatIsNone) {
  const std::string path = written(kOrder);
  const auto refused = [&](int64_t updates, int64_t workers) {
    return message_of<ConfigError>([&] { RecordedOrder(path, updates, workers); });
  };
  EXPECT_THAT(refused(6, 2), HasSubstr("run.h5 has 5 arrivals, the run has 6 updates"));
  EXPECT_THAT(refused(5, 1), HasSubstr("run.h5 has a worker 1, and parallel.workers = 1"));
  std::vector<Arrival> early = kOrder;
  early[1].staleness = 2;
  EXPECT_THAT(message_of<ConfigError>([&] { RecordedOrder(written(early), 5, 2); }),
              HasSubstr("has an update 2 of weights that were not yet"));
  RunRecord plain;
  plain.tables["train"] = {"train", "updates", {column("update", "1", "update", "from 1")}, {1, 2}};
  write_run_file(folder_ / "plain.h5", plain);
  EXPECT_THAT(message_of<ConfigError>([&] { RecordedOrder(folder_ / "plain.h5", 1, 1); }),
              HasSubstr("plain.h5 is of a run without workers"));
  EXPECT_THAT(message_of<IoError>([&] { RecordedOrder(folder_ / "none.h5", 1, 1); }), HasSubstr("none.h5"));
}

}  // namespace
}  // namespace basin::testing
