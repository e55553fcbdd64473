// In which order cells are begun: whole comparisons when it is stopped, and no idle workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/files.h"
#include "sweep/cost_model.h"
#include "sweep/order.h"
#include "sweep/plan.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

std::vector<Cell> in_order(const std::vector<Cell>& cells, const CostModel& costs) {
  std::vector<Cell> ordered;
  for (const size_t i : running_order(cells, costs)) ordered.push_back(cells[i]);
  return ordered;
}

std::vector<double> seconds_of(const std::vector<Cell>& cells, const CostModel& costs) {
  std::vector<double> seconds;
  for (const Cell& cell : cells) seconds.push_back(costs.seconds(cell.run_id));
  return seconds;
}

// Protocol B costs ten times what A does.
const std::string kTwoProtocols =
    "model = 'mlp'\nupdates = 40\ntarget_loss = 1e-9\nmax_gradients = 60000\n[data]\nset = 'synthetic'\n"
    "train_examples = 200\ntest_examples = 60\n[mlp]\nhidden = [8]\n[sweep]\nprotocol = ['A-updates', 'B']\n"
    "seed = [3, 1, 2]\nbatch_size = [16, 64]\noptimizer = ['sgd', 'lamb']\n";

class RunningOrder : public ::testing::Test {
 protected:
  std::vector<Cell> cells = expand(parse_study(kTwoProtocols, "s.toml", {}));
  CostModel costs{cells, false};
  std::vector<Cell> order = in_order(cells, costs);
};

TEST_F(RunningOrder, ASweepThatIsStoppedHasWholeComparisons) {
  ASSERT_EQ(order.size(), 24u);
  // Wherever it stops, at most one seed is begun and not whole; seeds come as the study lists them.
  const std::vector<int64_t> seeds = {3, 1, 2};
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i].options.train.seed, seeds[i / 8]) << i;
  // Within a seed, after an even number of runs both protocols of every setting that was begun are there.
  for (size_t i = 0; i < order.size(); i += 2) {
    const TrainOptions &first = order[i].options.train, &second = order[i + 1].options.train;
    EXPECT_EQ(first.protocol, "B") << i;  // the longer
    EXPECT_EQ(second.protocol, "A-updates") << i;
    EXPECT_EQ(first.batch_size, second.batch_size) << i;
    EXPECT_EQ(order[i].options.optimizer, order[i + 1].options.optimizer) << i;
  }
}

TEST_F(RunningOrder, TheLongestComesFirstWithinAComparison) {
  for (size_t i = 0; i + 2 < 8; i += 2)
    EXPECT_GE(costs.seconds(order[i].run_id), costs.seconds(order[i + 2].run_id)) << i;
}

TEST_F(RunningOrder, DoesNotMoveWhatIsInOrder) {
  std::vector<std::string> ids, again;
  for (const Cell& cell : order) ids.push_back(cell.run_id);
  for (const Cell& cell : in_order(order, costs)) again.push_back(cell.run_id);
  EXPECT_EQ(ids, again);
}

TEST_F(RunningOrder, HasParentsBeforeThoseThatNeedThemAndMovesNothingElse) {
  std::vector<Cell> related = order;
  related[0].parents = {order[7].run_id, order[3].run_id};
  related[3].parents = {order[20].run_id};
  related[5].parents = {"of another sweep"};
  std::vector<std::string> ids, expected;
  for (const Cell& cell : in_order(related, costs)) ids.push_back(cell.run_id);
  for (const size_t i : {7, 20, 3, 0, 1, 2, 4, 5, 6, 8}) expected.push_back(order[i].run_id);
  ids.resize(expected.size());
  EXPECT_EQ(ids, expected);
}

TEST(RunningOrderOfOneProtocol, IsTheLongestFirstWhereThereIsOneSeed) {
  const std::vector<Cell> cells = expand(parse_study(
      "epochs = 1\n[data]\nset = 'synthetic'\n[sweep]\nbatch_size = [64, 16, 32]\n", "s.toml", {}));
  const CostModel costs(cells, false);
  const std::vector<double> seconds = seconds_of(in_order(cells, costs), costs);
  EXPECT_TRUE(std::is_sorted(seconds.rbegin(), seconds.rend()));
}

// With workers that are never idle before the last cell is begun, the end is at most a cell's length after the mean load
// (R. L. Graham, SIAM J. Appl. Math. 17, 1969); the quick study has cells enough that it is hardly later than longest first.
TEST(RunningOrderOfTheQuickStudy, TakesHardlyLongerThanTheLongestFirst) {
  const std::string path = testing::source_folder() + "/configs/quick.toml";
  const std::vector<Cell> cells = expand(read_study(path, {}));
  const CostModel costs(cells, true);
  const std::vector<double> seconds = seconds_of(in_order(cells, costs), costs);
  std::vector<double> longest_first = seconds;
  std::sort(longest_first.begin(), longest_first.end(), std::greater<>());
  const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  for (const int64_t workers : {1, 2, 4, 8}) {
    const double w = static_cast<double>(workers), end = makespan(seconds, workers);
    EXPECT_LE(end, total / w + (1 - 1 / w) * longest_first.front() + 1e-6) << workers;
    EXPECT_LE(end, 1.1 * makespan(longest_first, workers)) << workers;
  }
}

TEST(ProbeCostWarning, ComparesTheProbesThatAreMadeWithTheTraining) {
  const auto warning = [](const std::string& updates, bool probed) {
    SweepPlan plan;
    plan.cells = expand(parse_study("protocol = 'A-updates'\nupdates = " + updates +
                                        "\nbatch_size = 32\n[data]\nset = 'synthetic'\n[probes]\nrun = "
                                        "['top_eigenvalues']\nsubset = 1000\n",
                                    "s.toml", {}));
    plan.probed = {probed};
    return probe_cost_warning(plan, CostModel(plan.cells, plan.probed));
  };
  // By round figures an update of 32 takes 6 ms, and a Hessian-vector product on 1,000 images 0.9 s.
  EXPECT_NE(warning("1", true), "");
  EXPECT_EQ(warning("1", false), "");
  EXPECT_EQ(warning("1000000", true), "");
}

// Three trials and two runs at the winner's rate, which take 1 s to train by round figures (an update of 32: 6 ms): trials aren't probed.
TEST(ForecastOfAStudyThatTunes, HasNoProbesOfTrials) {
  const auto plan_of = [](const std::string& run) {
    const Study study = parse_study(
        "protocol = 'A-updates'\nupdates = 100\nbatch_size = 32\n[data]\nset = 'synthetic'\n[probes]\nsubset "
        "= 1000\nrun = " +
            run +
            "\n[sweep]\nlearning_rate = 'tuned'\nseed = [11, 12]\n"
            "[tune]\ntrials = 3\nseeds = [1]\n[[tune.range]]\nkey = 'learning_rate'\nlow = 0.01\nhigh = "
            "1.0\n",
        "s.toml", {});
    const testing::TemporaryFolder folder;
    return plan_sweep(study, SweepPaths(folder / "out"), {});
  };
  const SweepPlan bare = plan_of("[]"), probed = plan_of("['top_eigenvalues']");
  ASSERT_EQ(probed.cells.size(), 5u);
  const CostModel without(bare.cells, bare.probed), with(probed.cells, probed.probed);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(with.probe_seconds(probed.cells[i].run_id), 0) << i;
  const double of_one = with.probe_seconds(probed.cells[3].run_id);
  EXPECT_GT(of_one, 1);
  EXPECT_NEAR(seconds_left(probed, with, 1, false), seconds_left(bare, without, 1, false) + 2 * of_one, 1e-9);
}

}  // namespace
}  // namespace basin
