// WorkerClocks against the rule of stale-synchronous parallel, from the order of its arrivals alone.
#include "trainers/workers/worker_clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/message_of.h"

namespace basin::testing {
namespace {

std::vector<StaleStep> arrivals(WorkerClocks& clocks, int64_t count, int64_t first = 0) {
  std::vector<StaleStep> all;
  for (int64_t update = first; update < first + count; ++update) {
    all.push_back(clocks.next());
    clocks.advance(update + 1);
  }
  return all;
}

TEST(WorkerClocks, OneWorkerIsNeverStale) {
  WorkerClocks clocks({.workers = 1, .bound = 0, .exponential = true, .seed = 3});
  int64_t update = 0;
  for (const StaleStep& step : arrivals(clocks, 50)) {
    EXPECT_EQ(step.version, update);
    EXPECT_EQ(step.batch, update++);
  }
  EXPECT_EQ(clocks.waited_share(), 0);
}

// By hand: all steps last 1, so rounds of three arrive at once, the lower number first, and each begins anew with what has come so far.
TEST(WorkerClocks, EqualStepsTakeTurns) {
  WorkerClocks free({.workers = 3, .bound = -1});
  std::vector<int64_t> workers, staleness;
  int64_t update = 0;
  for (const StaleStep& step : arrivals(free, 9)) {
    workers.push_back(step.worker);
    staleness.push_back(update++ - step.version);
  }
  EXPECT_EQ(workers, (std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(staleness, (std::vector<int64_t>{0, 1, 2, 2, 2, 2, 2, 2, 2}));

  WorkerClocks together({.workers = 3, .bound = 0});
  staleness.clear();
  update = 0;
  for (const StaleStep& step : arrivals(together, 9)) staleness.push_back(update++ - step.version);
  EXPECT_EQ(staleness, (std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0, 1, 2}));
}

// The first takes 3 where the second takes 1. Bound 1: the second may do steps 0 and 1, which end at 1 and 2, and then waits until 3;
// it has done two and goes on with one more until 4, and waits until 6.
TEST(WorkerClocks, AStragglerHoldsTheOthersAtTheBound) {
  WorkerClocks clocks({.workers = 2, .bound = 1, .straggler = 3});
  std::vector<double> ends;
  std::vector<int64_t> workers;
  for (const StaleStep& step : arrivals(clocks, 6)) {
    ends.push_back(step.ends);
    workers.push_back(step.worker);
  }
  EXPECT_EQ(ends, (std::vector<double>{1, 2, 3, 4, 6, 7}));
  EXPECT_EQ(workers, (std::vector<int64_t>{1, 1, 0, 1, 0, 1}));
  EXPECT_DOUBLE_EQ(clocks.waited_share(), (1.0 + 2.0) / (2 * 7));
}

class Bound : public ::testing::TestWithParam<int> {};

// What is seen of 2,000 arrivals: each worker's steps come in their order, none begins before the rule allows it, weights and batches
// are those of the moment at which it begins.
TEST_P(Bound, IsKept) {
  const int64_t s = GetParam(), k = 4;
  WorkerClocks clocks({.workers = k, .bound = s, .exponential = true, .straggler = 2, .seed = 7});
  std::vector<int64_t> clock(static_cast<size_t>(k), 0);
  int64_t most_stale = 0, most_lead = 0;
  std::vector<bool> seen(3000, false);
  for (int64_t update = 0; update < 2000; ++update) {
    const StaleStep step = clocks.next();
    EXPECT_EQ(step.clock, clock[static_cast<size_t>(step.worker)]++);
    const int64_t slowest = *std::min_element(clock.begin(), clock.end());
    EXPECT_EQ(clocks.lead(), clock[static_cast<size_t>(step.worker)] - slowest);
    most_lead = std::max(most_lead, clock[static_cast<size_t>(step.worker)] - slowest);
    most_stale = std::max(most_stale, update - step.version);
    EXPECT_FALSE(seen[static_cast<size_t>(step.batch)]);
    seen[static_cast<size_t>(step.batch)] = true;
    clocks.advance(update + 1);
  }
  if (s < 0) {
    EXPECT_GT(most_lead, 50);  // the straggler falls behind without end
    return;
  }
  EXPECT_EQ(most_lead, s + 1);
  EXPECT_LE(most_stale, (k - 1) * (2 * s + 1));
  EXPECT_GE(most_stale, k - 1);
  EXPECT_GT(clocks.waited_share(), 0);
}
INSTANTIATE_TEST_SUITE_P(Of, Bound, ::testing::Values(0, 1, 3, -1), [](const auto& info) {
  return info.param < 0 ? "none" : std::to_string(info.param);
});

// Means of 20,000 draws: an exponential's mean and standard deviation are 1, the errors of both 0.007 and 0.01.
TEST(WorkerClocks, ExponentialStepsHaveMeanAndDeviationOne) {
  WorkerClocks clocks({.workers = 1, .bound = 0, .exponential = true, .seed = 5});
  double before = 0, sum = 0, squares = 0;
  const int64_t n = 20000;
  for (const StaleStep& step : arrivals(clocks, n)) {
    const double duration = step.ends - before;
    before = step.ends;
    sum += duration;
    squares += duration * duration;
  }
  const double mean = sum / n, deviation = std::sqrt(squares / n - mean * mean);
  EXPECT_NEAR(mean, 1, 0.03);
  EXPECT_NEAR(deviation, 1, 0.04);
}

TEST(WorkerClocks, GoOnFromTheirState) {
  const WorkerClocks::Options options{.workers = 5, .bound = 1, .exponential = true, .seed = 9};
  WorkerClocks whole(options), part(options), rest(options);
  arrivals(part, 37);
  rest.load_state(part.state());
  arrivals(whole, 37);
  const auto a = arrivals(whole, 40, 37), b = arrivals(rest, 40, 37);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].worker, b[i].worker);
    EXPECT_EQ(a[i].version, b[i].version);
    EXPECT_EQ(a[i].batch, b[i].batch);
    EXPECT_EQ(a[i].ends, b[i].ends);
  }
  EXPECT_EQ(whole.waited_share(), rest.waited_share());
  WorkerClocks others({.workers = 4});
  EXPECT_THAT(testing::message_of<IoError>([&] { others.load_state(part.state()); }),
              ::testing::HasSubstr("\"workers\" of 4 workers"));
}

}  // namespace
}  // namespace basin::testing
