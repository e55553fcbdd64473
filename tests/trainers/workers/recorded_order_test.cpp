// RecordedOrder against an order of arrivals written down by hand.
#include "trainers/workers/recorded_order.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "io/run_file.h"
#include "tests/support/message_of.h"
#include "tests/support/order_file.h"
#include "tests/support/temporary_folder.h"

namespace basin::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Recorded : public ::testing::Test {
 protected:
  std::string written(const std::vector<Arrival>& order, const std::string& name = "run.h5") const {
    return write_order(folder_ / name, order);
  }
  RecordedOrder made(const std::vector<Arrival>& order, const std::string& name = "run.h5") const {
    return {read_arrivals(written(order, name)), 5, 2};
  }
  TemporaryFolder folder_;
};

TEST_F(Recorded, IsThatOrder) {
  written(kOrderByHand);
  RecordedOrder order(read_arrivals(folder_.path()), 5, 2);
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
  RecordedOrder order = made(kOrderByHand);
  EXPECT_THAT(order.versions(), ElementsAre(0));
  order.advance(1);
  EXPECT_THAT(order.versions(), ElementsAre(0, 1));
  order.advance(2);
  EXPECT_THAT(order.versions(), ElementsAre(0, 2));
  order.advance(3);
  EXPECT_THAT(order.versions(), ElementsAre(2));
}

TEST_F(Recorded, GoesOnFromACheckpoint) {
  RecordedOrder order = made(kOrderByHand), again = made(kOrderByHand);
  order.advance(1), order.advance(2);
  again.load_state(order.state());
  EXPECT_EQ(again.next().batch, 1);
  EXPECT_EQ(again.versions(), order.versions());

  std::vector<Arrival> other = kOrderByHand;
  other[4].batch = 6;
  RecordedOrder changed = made(other, "other.h5");
  EXPECT_THAT(message_of<IoError>([&] { changed.load_state(order.state()); }),
              HasSubstr("other.h5 has another order of arrivals than the checkpoint"));
}

// hashlib's of "s\n0 0 0 1 0x1p-1\n0 2 0 2 0x1p+0\n1 1 2 -1 0x1.4p+0\n0 4 1 2 0x1.8p+0\n0 5 0 3 0x1p+1\n".
TEST_F(Recorded, IsKnownByItsNumbers) {
  EXPECT_EQ(read_arrivals(written(kOrderByHand)).sha256,
            "8f0053bd5b6ef9b88c367f3f1c82191cefb0e299fbbe1ad9d539bf73a63b6201");
}

TEST_F(Recorded, RefusesWhatIsNone) {
  const std::string path = written(kOrderByHand);
  const auto refused = [&](int64_t updates, int64_t workers) {
    return message_of<ConfigError>([&] { RecordedOrder(read_arrivals(path), updates, workers); });
  };
  EXPECT_THAT(refused(6, 2), HasSubstr("run.h5 has 5 arrivals, the run has 6 updates"));
  EXPECT_THAT(refused(5, 1), HasSubstr("run.h5 has a worker 1, and parallel.workers = 1"));
  std::vector<Arrival> early = kOrderByHand;
  early[1].staleness = 2;
  EXPECT_THAT(message_of<ConfigError>([&] { read_arrivals(written(early)); }),
              HasSubstr("has an update 2 of weights that were not yet"));
  RunRecord plain;
  plain.tables["train"] = {"train", "updates", {column("update", "1", "update", "from 1")}, {1, 2}};
  write_run_file(folder_ / "plain.h5", plain);
  EXPECT_THAT(message_of<ConfigError>([&] { read_arrivals(folder_ / "plain.h5"); }),
              HasSubstr("plain.h5 is of a run without workers"));
  EXPECT_THAT(message_of<IoError>([&] { read_arrivals(folder_ / "none.h5"); }), HasSubstr("none.h5"));
  write_order(folder_ / "branch.h5", kOrderByHand, "cdef01234567", 11);
  EXPECT_THAT(message_of<ConfigError>([&] { read_arrivals(folder_ / "branch.h5"); }),
              HasSubstr("branch.h5 is of a branch, which began after update 10"));
}

}  // namespace
}  // namespace basin::testing
