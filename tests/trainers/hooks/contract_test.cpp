// What holds of every hook in the registry: nothing where it is off, something where it is on, and the same bits after a stop.
#include <gtest/gtest.h>

#include "core/registry.h"
#include "io/checkpoint.h"
#include "io/run_file.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainers/recorded_run.h"
#include "trainers/hooks/registry.h"

namespace basin::testing {
namespace {

class HookContract : public ::testing::TestWithParam<std::string> {
 protected:
  const HookEntry& entry() const { return find_entry(hook_registry(), GetParam(), "hook"); }

  /// A run of twelve updates that has this hook alone or none, under the settings that it needs as far as they are a trainer's
  /// without hooks.
  RunSettings settings(bool registered, bool on) const {
    RunSettings s = small_settings();
    s.train.updates = 12;
    s.train.micro_batch = 20;
    s.train.evaluate_every = 100;
    s.train.hooks = {};
    if (registered) s.train.hooks.add(entry().make_options());
    OptionTable table;
    table.add("optimizer", s.optimizer, anything(), "");
    bind_options(table, s.train);
    if (on)
      for (const std::string& setting : entry().on)
        if (table.has(setting.substr(0, setting.find('=')))) table.set_from_text(setting, "hook_registry()");
    return s;
  }
};

void expect_same_checkpoints(const Checkpoint& a, const Checkpoint& b) {
  const auto expect_same = [](const NamedTensors& mine, const NamedTensors& theirs) {
    ASSERT_EQ(mine.size(), theirs.size());
    for (size_t i = 0; i < mine.size(); ++i) {
      EXPECT_EQ(mine[i].first, theirs[i].first);
      EXPECT_TRUE(mine[i].second.equal(theirs[i].second)) << mine[i].first;
    }
  };
  for (size_t i = 0; i < b.parameters.size(); ++i)
    EXPECT_TRUE(a.parameters.at(i).tensor.equal(b.parameters[i].tensor)) << b.parameters[i].name;
  expect_same(a.optimizer, b.optimizer);
  ASSERT_EQ(a.states.size(), b.states.size());
  for (const auto& [name, tensors] : b.states) expect_same(a.state(name), tensors);
  ASSERT_EQ(a.progress.size(), b.progress.size());
  for (const auto& [key, value] : b.progress) {
    const bool is_time = key.find("seconds") != std::string::npos;
    if (is_time) continue;
    EXPECT_EQ(to_toml(a.progress.at(key)), to_toml(value)) << key;  // NaN is NaN
  }
}

TEST_P(HookContract, IsNothingWhereItIsOff) {
  const TemporaryFolder without_folder, with_folder;
  RecordedRun without(settings(false, false), without_folder.path()),
      with(settings(true, false), with_folder.path());
  const TrainResult expected = without.finish(), result = with.finish();
  EXPECT_TRUE(with.trainer->hook_columns().empty() && with.trainer->hook_tables().empty());
  EXPECT_EQ(result.summary.size(), expected.summary.size());
  EXPECT_EQ(with.listener.checkpoints.size(), without.listener.checkpoints.size());
  expect_same_tables(read_run_file(with_folder / "run.h5"), read_run_file(without_folder / "run.h5"));
  for (const auto& [label, checkpoint] : without.listener.checkpoints) {
    EXPECT_TRUE(checkpoint.states.empty());
    expect_same_checkpoints(with.listener.checkpoints.at(label), checkpoint);
  }
  const HookCost cost = settings(true, false).train.hooks.cost();
  EXPECT_TRUE(cost.evaluations == 0 && cost.test_passes == 0 && cost.checkpoints.empty());
}

// By what it may touch: weights, the record, checkpoints, the summary.
TEST_P(HookContract, IsSomethingWhereItIsOn) {
  TestRun on(settings(true, true)), off(settings(false, true));
  const TrainResult with = on.run(), without = off.run();
  const bool differs = !on.weights().equal(off.weights()) || with.summary.size() != without.summary.size() ||
                       !on.trainer->hook_columns().empty() || !on.trainer->hook_tables().empty() ||
                       on.listener.checkpoints.size() != off.listener.checkpoints.size();
  EXPECT_TRUE(differs);
  const HookCost cost = on.settings.train.hooks.cost();
  for (const std::string& label : cost.checkpoints)
    EXPECT_TRUE(on.listener.checkpoints.count(label)) << label;
  for (const Table& table : on.trainer->hook_tables()) {
    for (const std::vector<double>& row : on.listener.rows.at(table.name))
      EXPECT_EQ(static_cast<int64_t>(row.size()), table.row_width()) << table.name;
  }
  for (const UpdateRecord& update : on.listener.updates)
    EXPECT_EQ(update.hook_values.size(), on.trainer->hook_columns().size());
}

// Nobody else knows what such a number is: without a meaning it would be a column that means nothing in every collected sweep.
TEST_P(HookContract, SaysWhatItWritesIntoTheSummary) {
  TestRun on(settings(true, true)), off(settings(false, true));
  const TrainResult with = on.run(), without = off.run();
  const auto has = [](const TrainResult& result, const std::string& name) {
    return std::any_of(result.summary.begin(), result.summary.end(),
                       [&](const auto& number) { return number.first == name; });
  };
  const std::vector<std::string> declared = names_of(entry().summary);
  for (const auto& [name, value] : with.summary) {
    const bool is_declared = std::find(declared.begin(), declared.end(), name) != declared.end();
    EXPECT_NE(has(without, name), is_declared) << name << ": of the trainer alone, or of HookEntry::summary";
  }
  for (const Column& number : entry().summary) {
    EXPECT_TRUE(has(with, number.name)) << number.name;
    EXPECT_FALSE(number.long_name.empty() || number.definition.empty()) << number.name;
  }
}

// Through the files: the hook has nothing but its checkpoint to go on from.
TEST_P(HookContract, GoesOnToTheSameBits) {
  const RunSettings s = settings(true, true);
  const TemporaryFolder quiet, disturbed;
  RecordedRun undisturbed(s, quiet.path());
  const TrainResult expected = undisturbed.finish();
  for (const int64_t stop : {1, 6}) {
    RecordedRun part(s, disturbed.path());
    part.recorder.conclude(part.run_until(stop));
  }
  RecordedRun rest(s, disturbed.path());
  ASSERT_EQ(rest.trainer->updates_done(), 6);
  const TrainResult result = rest.finish();
  ASSERT_EQ(result.summary.size(), expected.summary.size());
  for (const auto& [key, value] : expected.summary) {
    if (key.find("second") != std::string::npos) continue;  // times and rates
    EXPECT_EQ(fmt::format("{}", number(result, key)), fmt::format("{}", number(expected, key))) << key;
  }
  expect_same_tables(read_run_file(disturbed / "run.h5"), read_run_file(quiet / "run.h5"));
  expect_same_checkpoints(read_checkpoint(disturbed / "ckpt/end.h5"), read_checkpoint(quiet / "ckpt/end.h5"));
}

TEST_P(HookContract, SaysWhatItIs) {
  EXPECT_TRUE(entry().help.ends_with('.')) << entry().help;
  EXPECT_FALSE(entry().on.empty());
}

INSTANTIATE_TEST_SUITE_P(Registered, HookContract, ::testing::ValuesIn(names_of(hook_registry())),
                         [](const auto& info) { return info.param; });

TEST(HookList, IsCopiedByValue) {
  HookList one = registered_hooks();
  HookList other = one;
  OptionTable table;
  other.bind(table);
  const std::string before = table.to_toml();
  OptionTable mine;
  one.bind(mine);
  mine.set_from_text("clip_gradient=0.5", "test");
  EXPECT_EQ(table.to_toml(), before);
  EXPECT_NE(mine.to_toml(), before);
}

}  // namespace
}  // namespace basin::testing
