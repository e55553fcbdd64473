// One run on several ranks is the run of one process, but for the order of its sums.
#include <gmock/gmock.h>

#include <cmath>
#include <mutex>

#include "core/runtime.h"
#include "optim/lbfgs.h"
#include "tests/support/rank_threads.h"
#include "tests/trainers/test_run.h"
#include "trainers/hooks/example_noise.h"
#include "trainers/hooks/ledger.h"
#include "trainers/hooks/noise_gauge.h"
#include "trainers/hooks/perturbed_gradient.h"

namespace basin::testing {
namespace {

using ::testing::Each;

// Float64 sums in another order; five updates amplify 1e-16 by far less than 1e4.
constexpr double kOtherOrder = 1e-12;

/// What is compared of a run.
struct Outcome {
  std::vector<at::Tensor> parameters, statistics;
  std::vector<UpdateRecord> updates;
  std::map<std::string, std::vector<std::vector<double>>> rows;
  ExampleOutcomes test;
  double train_loss = NAN, test_accuracy = NAN;
};

Outcome outcome_of(TestRun& run) {
  const TrainResult result = run.run();
  Outcome outcome;
  for (const ParameterInfo& p : run.model->parameter_table())
    outcome.parameters.push_back(p.tensor.detach().to(at::kDouble).clone());
  for (const auto& [name, tensor] : run.model->buffer_table())
    outcome.statistics.push_back(tensor.to(at::kDouble));
  outcome.updates = run.listener.updates;
  outcome.rows = run.listener.rows;
  outcome.test = result.test;
  outcome.train_loss = number(result, "train_loss");
  outcome.test_accuracy = number(result, "test_acc");
  return outcome;
}

std::vector<Outcome> outcomes_on(int ranks, const RunSettings& settings) {
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  EXPECT_THAT(on_ranks(ranks,
                       [&](RankGroup& group) {
                         RunSettings mine = settings;
                         mine.ranks = &group;
                         TestRun run(mine);
                         outcomes[static_cast<size_t>(group.rank())] = outcome_of(run);
                       }),
              Each(""));
  return outcomes;
}

/// Largest |a - b| / |b| over tensors.
double worst(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, relative_difference(a[i], b[i]));
  return largest;
}

void expect_same_run(const Outcome& several, const Outcome& one, double bound) {
  EXPECT_LE(worst(several.parameters, one.parameters), bound);
  EXPECT_LE(worst(several.statistics, one.statistics), bound);
  ASSERT_EQ(several.updates.size(), one.updates.size());
  for (size_t i = 0; i < one.updates.size(); ++i) {
    EXPECT_NEAR(several.updates[i].loss, one.updates[i].loss, bound * one.updates[i].loss);
    EXPECT_NEAR(several.updates[i].gradient_norm, one.updates[i].gradient_norm,
                10 * bound * one.updates[i].gradient_norm);
  }
  EXPECT_NEAR(several.train_loss, one.train_loss, bound * one.train_loss);
  EXPECT_EQ(several.test_accuracy, one.test_accuracy);
  EXPECT_EQ(several.test.correct, one.test.correct);
  EXPECT_EQ(several.test.predicted, one.test.predicted);
  ASSERT_EQ(several.test.loss.size(), one.test.loss.size());
}

void expect_same_bits(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(worst(a.parameters, b.parameters), 0);
  EXPECT_EQ(worst(a.statistics, b.statistics), 0);
  EXPECT_EQ(a.test.loss, b.test.loss);
}

/// Batch norm, dropout, augmentation, in float64.
RunSettings whole_settings() {
  RunSettings s = noisy_settings("sgd");
  s.train.dtype = "float64";
  s.train.updates = 5;
  s.train.batch_size = 48;
  s.train.micro_batch = 24;
  return s;
}

TEST(Ranks, TheRunDoesntDependOnTheirNumber) {
  for (const char* optimizer : {"sgd", "lamb", "lars", "adam"}) {
    RunSettings s = whole_settings();
    s.optimizer = optimizer;
    s.train.learning_rate = rate_of_first_move(s, 0.01);
    // A bias in front of batch norm has a gradient that is nothing but rounding, and Adam's kind divides it by itself.
    const double bound =
        std::string(optimizer) == "sgd" || std::string(optimizer) == "lars" ? kOtherOrder : 1e-9;
    TestRun alone(s);
    const at::Tensor start = alone.weights();
    const Outcome one = outcome_of(alone);
    ASSERT_GT(relative_difference(alone.weights(), start), 1e-3) << "nothing was trained";
    for (const int ranks : {2, 4}) {
      const std::vector<Outcome> several = outcomes_on(ranks, s);
      SCOPED_TRACE(fmt::format("{} on {} ranks", optimizer, ranks));
      for (const Outcome& rank : several) expect_same_bits(rank, several.front());
      expect_same_run(several.front(), one, bound);
    }
  }
}

/// L-BFGS with a network large enough that inner products are divided.
RunSettings lbfgs_settings(int64_t history) {
  RunSettings s = small_settings();
  s.model_settings = {"hidden=[350]"};
  s.train.updates = 8;
  s.train.batch_size = 96;
  s.optimizer = "lbfgs";
  s.optimizer_settings = {fmt::format("history={}", history)};
  s.train.learning_rate = 0.1;
  return s;
}

// Pairs are differences of gradients, and divided by one another: eight updates amplify 1e-16 by less than 1e7.
TEST(Ranks, InnerProductsOfLbfgsAreShared) {
  TestRun alone(lbfgs_settings(3));
  ASSERT_GT(alone.model->parameter_count(), Lbfgs::kDividedFrom);
  const at::Tensor start = alone.weights();
  const Outcome one = outcome_of(alone);
  ASSERT_GT(relative_difference(alone.weights(), start), 1e-3) << "nothing was trained";
  const std::vector<Outcome> several = outcomes_on(3, lbfgs_settings(3));
  for (const Outcome& rank : several) expect_same_bits(rank, several.front());
  expect_same_run(several.front(), one, 1e-9);
}

// By hand: without a pair one for the step's length; with p pairs two for a new pair, p rho, 2p of the recursion, one for its scale. Eight
// updates: 1 + 7 (2 + 4) with a history of one, 1 + 6 + 9 + 5 * 12 with three.
TEST(Ranks, InnerProductsOfLbfgsAreSummedOneByOne) {
  const auto sums = [](int64_t history) {
    int64_t made = 0;
    EXPECT_THAT(on_ranks(2,
                         [&](RankGroup& group) {
                           RunSettings mine = lbfgs_settings(history);
                           mine.ranks = &group;
                           TestRun(mine).run();
                           if (group.is_first()) made = group.traffic().sums;
                         }),
                Each(""));
    return made;
  };
  EXPECT_EQ(sums(3) - sums(1), 76 - 43);
}

// Every gradient from a multiple of 64 bytes on, and the sum of losses.
TEST(Ranks, AnUpdatesBytesAreThoseOfTheGradients) {
  const RunSettings settings = whole_settings();
  TestRun alone(settings);
  double expected = 8;
  for (const ParameterInfo& p : alone.model->parameter_table())
    expected += 64 * std::ceil(static_cast<double>(p.tensor.nbytes()) / 64);
  EXPECT_THAT(on_ranks(2,
                       [&](RankGroup& group) {
                         RunSettings mine = settings;
                         mine.ranks = &group;
                         TestRun run(mine);
                         const TrainResult result = run.run();
                         EXPECT_EQ(number(result, "rank_bytes_per_update"), expected);
                         EXPECT_GT(number(result, "rank_wait_share"), 0);
                         EXPECT_LT(number(result, "rank_wait_share"), 1);
                       }),
              Each(""));
}

TEST(Ranks, InFloat32ToItsRounding) {
  RunSettings s = whole_settings();
  s.train.dtype = "float32";
  TestRun alone(s);
  const Outcome one = outcome_of(alone);
  // Single sums differ by 1e-7; relu's and pooling's corners amplify that, in five updates to less than 100 times as much.
  for (const Outcome& rank : outcomes_on(2, s)) EXPECT_LE(worst(rank.parameters, one.parameters), 1e-5);
}

TEST(Ranks, TheSameBitsFromRunToRun) {
  RunSettings s = whole_settings();
  s.train.dtype = "float32";
  expect_same_bits(outcomes_on(3, s).front(), outcomes_on(3, s).front());
}

// Groups of a gradient rule, an average, Lookahead, clipping, a batch that grows; milestones of the loss under protocol B are checks of
// the whole training loss.
TEST(Ranks, HooksSeeTheWholeBatch) {
  RunSettings s = with_hooks(whole_settings());
  s.train.hook<PerturbationOptions>().examples = 24;  // two ghost batches
  s.train.updates = 6;
  TestRun alone(s);
  const Outcome one = outcome_of(alone);
  expect_same_run(outcomes_on(2, s).front(), one, kOtherOrder);
}

TEST(Ranks, InjectedNoiseIsTheSame) {
  RunSettings s = whole_settings();
  s.train.hook<ExampleNoiseOptions>().batch = 24;
  TestRun alone(s);
  const Outcome one = outcome_of(alone);
  expect_same_run(outcomes_on(4, s).front(), one, kOtherOrder);
}

// The same micro-batches on one process: what is estimated from their norms is then the same too.
TEST(Ranks, GaugesSeeEveryMicroBatch) {
  RunSettings s = whole_settings();
  s.train.micro_batch = 12;
  s.train.hook<NoiseGaugeOptions>().every = 2;
  s.train.hook<LedgerGaugeOptions>().every = 2;
  TestRun alone(s);
  const Outcome one = outcome_of(alone);
  const Outcome several = outcomes_on(2, s).front();
  expect_same_run(several, one, kOtherOrder);
  ASSERT_FALSE(one.rows.empty());
  for (const auto& [table, rows] : one.rows) {
    const auto& others = several.rows.at(table);
    ASSERT_EQ(others.size(), rows.size()) << table;
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t k = 0; k < rows[i].size(); ++k) {
        if (!std::isfinite(rows[i][k])) continue;
        // A difference of squares loses digits, and a bracket's ends move by its width.
        EXPECT_NEAR(others[i][k], rows[i][k], 1e-6 * std::abs(rows[i][k]) + 1e-12)
            << table << ' ' << i << ' ' << k;
      }
    }
  }
}

// A checkpoint of two ranks goes on alone, and one of one process on two.
TEST(Ranks, AnotherNumberGoesOnFromACheckpoint) {
  RunSettings s = whole_settings();
  TestRun whole(s);
  const Outcome one = outcome_of(whole);
  Checkpoint half;
  EXPECT_THAT(on_ranks(2,
                       [&](RankGroup& group) {
                         RunSettings mine = s;
                         mine.ranks = &group;
                         TestRun run(mine);
                         run.run_until(3);
                         if (group.is_first()) half = run.listener.checkpoints.at("latest");
                       }),
              Each(""));
  TestRun rest(s);
  rest.trainer->restore(half);
  const Outcome alone = outcome_of(rest);
  EXPECT_LE(worst(alone.parameters, one.parameters), kOtherOrder);
}

TEST(Ranks, ASignalToOneStopsAll) {
  std::mutex mutex;
  std::vector<int64_t> stopped;
  EXPECT_THAT(on_ranks(3,
                       [&](RankGroup& group) {
                         RunSettings mine = whole_settings();
                         mine.ranks = &group;
                         TestRun run(mine);
                         if (group.rank() != 1) run.trainer->set_stop_request([] { return false; });
                         const TrainResult result = group.rank() == 1 ? run.run_until(2) : run.run();
                         if (result.status != RunState::interrupted) throw std::runtime_error("went on");
                         const std::lock_guard lock(mutex);
                         stopped.push_back(run.trainer->updates_done());
                       }),
              Each(""));
  EXPECT_THAT(stopped, Each(2));
}

TEST(Ranks, MoreThanThereIsToShareAreRefused) {
  RunSettings s = whole_settings();
  s.train.batch_size = s.train.micro_batch = 24;  // two ghost batches
  const auto faults = on_ranks(3, [&](RankGroup& group) {
    RunSettings mine = s;
    mine.ranks = &group;
    TestRun run(mine);
  });
  EXPECT_THAT(faults, Each("2 ghost batches of 12 can't be shared by 3 ranks"));
}

TEST(Ranks, WeightsThatDifferAreNoResult) {
  const auto faults = on_ranks(2, [&](RankGroup& group) {
    RunSettings mine = whole_settings();
    mine.ranks = &group;
    TestRun run(mine);
    if (group.rank() == 1) at::Tensor(run.model->parameter_table().front().tensor.detach()).add_(1e-3);
    run.run();
  });
  for (const std::string& fault : faults)
    EXPECT_THAT(fault, ::testing::HasSubstr("no longer the same at update"));
}

// The acceptance case of one cell on many ranks: a batch of 64K over 5,000 images, with all that draws by example.
TEST(Ranks, SlowSixtyFourThousandOverFiveThousand) {
  tune_allocator();  // half of the time is the system's otherwise
  RunSettings s = whole_settings();
  s.model_settings = {"width=1", "hidden=[4, 3]", "norm=batch", "dropout=0.5"};
  s.data.train_examples = 5000;
  s.data.test_examples = 500;
  s.train.batch_size = 65536;
  s.train.micro_batch = s.train.ghost_batch = 256;
  s.train.evaluate_every = 0;
  TestRun alone(s);
  const Outcome one = outcome_of(alone);
  for (const int ranks : {2, 4}) {
    const Outcome several = outcomes_on(ranks, s).front();
    RecordProperty(fmt::format("worst_of_{}", ranks),
                   fmt::format("{:.2g}", worst(several.parameters, one.parameters)));
    expect_same_run(several, one, kOtherOrder);
  }
}

}  // namespace
}  // namespace basin::testing
