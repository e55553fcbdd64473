// Shards of a study: every run in one of them, families whole, work even, whatever the process that asks.
#include "sweep/part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sweep/cost_model.h"
#include "tests/support/message_of.h"

namespace basin {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

const std::string kGrid =
    "model = 'mlp'\nupdates = 40\n[data]\nset = 'synthetic'\ntrain_examples = 200\ntest_examples = 60\n"
    "[mlp]\nhidden = [8]\n[sweep]\nseed = [1, 2, 3]\nbatch_size = [16, 64]\noptimizer = ['sgd', 'lamb']\n";

std::vector<std::string> ids_of(const std::vector<Cell>& cells) {
  std::vector<std::string> ids;
  for (const Cell& cell : cells) ids.push_back(cell.run_id);
  return ids;
}

std::vector<std::string> shard(const std::vector<Cell>& cells, int64_t index, int64_t count) {
  return ids_of(cells_of({index, count}, cells));
}

TEST(Shards, HoldEveryRunOnceInTheOrderOfTheList) {
  const std::vector<Cell> cells = expand(parse_study(kGrid, "s.toml", {}));
  const std::vector<std::string> listed = ids_of(cells);
  for (const int64_t count : {1, 2, 5, 12, 30}) {
    std::multiset<std::string> found;
    for (int64_t i = 1; i <= count; ++i) {
      const std::vector<std::string> mine = shard(cells, i, count);
      found.insert(mine.begin(), mine.end());
      const auto place = [&](const std::string& id) { return std::find(listed.begin(), listed.end(), id); };
      EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end(),
                                 [&](const auto& a, const auto& b) { return place(a) < place(b); }));
    }
    EXPECT_EQ(found, std::multiset<std::string>(listed.begin(), listed.end())) << count;
  }
}

TEST(Shards, HaveAboutAsMuchWork) {
  const std::vector<Cell> cells = expand(parse_study(kGrid, "s.toml", {}));
  const CostModel costs(cells, true);
  std::vector<double> work;
  double longest = 0;
  for (int64_t i = 1; i <= 4; ++i) {
    work.push_back(0);
    for (const std::string& id : shard(cells, i, 4)) work.back() += costs.seconds(id);
  }
  for (const Cell& cell : cells) longest = std::max(longest, costs.seconds(cell.run_id));
  // Greedy: when the last run is dealt out, its shard has the least.
  EXPECT_LE(*std::max_element(work.begin(), work.end()) - *std::min_element(work.begin(), work.end()),
            longest);
}

TEST(Shards, KeepFamiliesTogether) {
  std::vector<Cell> cells = expand(parse_study(kGrid, "s.toml", {}));
  // 0 - 5 - 7 and 9 - 7, given as parents in both directions of the list.
  cells[0].parents = {cells[5].run_id};
  cells[7].parents = {cells[5].run_id, cells[9].run_id};
  for (int64_t count = 2; count <= 12; ++count) {
    int64_t whole = 0;
    for (int64_t i = 1; i <= count; ++i) {
      const std::vector<std::string> mine = shard(cells, i, count);
      const std::set<std::string> has(mine.begin(), mine.end());
      const int64_t members = static_cast<int64_t>(has.count(cells[0].run_id) + has.count(cells[5].run_id) +
                                                   has.count(cells[7].run_id) + has.count(cells[9].run_id));
      EXPECT_TRUE(members == 0 || members == 4) << count;
      whole += members == 4;
    }
    EXPECT_EQ(whole, 1);
  }
}

TEST(Shards, OneCellIsThatOfTheList) {
  const std::vector<Cell> cells = expand(parse_study(kGrid, "s.toml", {}));
  EXPECT_EQ(ids_of(cells_of({1, 1, 3}, cells)), std::vector<std::string>{cells[2].run_id});
  EXPECT_EQ(message_of([&] { cells_of({1, 1, 13}, cells); }), "--cell 13: the study has 12 runs");
}

TEST(Shards, AreNamedByTwoNumbers) {
  EXPECT_EQ(parse_shard("3/8").index, 3);
  EXPECT_EQ(parse_shard("3/8").count, 8);
  for (const std::string wrong : {"0/2", "3/2", "2", "1/0", "-1/2", "a/b", "1/2/3", "1/1000000", ""})
    EXPECT_THAT(message_of([&] { parse_shard(wrong); }), HasSubstr("not I/N with 1 <= I <= N")) << wrong;
}

}  // namespace
}  // namespace basin
