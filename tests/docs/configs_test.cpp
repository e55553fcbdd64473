// The studies that come with Basin, as files that somebody runs: what they say must be sayable, and mean what
// their sources mean.
#include <gtest/gtest.h>

#include <filesystem>

#include "optim/exclusion.h"
#include "optim/schedule.h"
#include "study/study.h"
#include "tests/support/environment.h"
#include "trainers/hooks/lookahead.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

std::string folder() { return testing::source_folder() + "/configs"; }

TEST(Configs, AllExpandIntoRunsThatMayBeStarted) {
  int64_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder())) {
    SCOPED_TRACE(entry.path());
    ++files;
    const Study study = read_study(entry.path(), {});
    const std::vector<Cell> cells = study.tuning.enabled ? expand_tuning(study) : expand(study);
    EXPECT_FALSE(cells.empty());
    for (const Cell& cell : cells) EXPECT_NO_THROW(check(cell.options)) << cell.label;
  }
  EXPECT_GE(files, 9);
}

RunOptions first_run(const std::string& name) {
  return expand(read_study(folder() + "/" + name, {})).front().options;
}

// What a recipe with summed losses does to a weight w with mean gradient g, at batch size b: a decay and a
// rate per example.
struct SummedRecipe {
  double rate, decay;
  double step(double g, double w, double b) const { return rate * (b * g + decay * w); }
};

void expect_same_step(const RunOptions& options, const SummedRecipe& theirs) {
  const OptionView table = options.table();
  const double decay = std::get<double>(table.at("sgd.weight_decay").get());
  const double b = static_cast<double>(options.train.batch_size);
  for (const auto& [g, w] : {std::pair{1.0, 0.0}, {0.0, 1.0}, {0.3, -2.0}}) {
    const double ours = options.train.learning_rate * (g + decay * w);
    EXPECT_NEAR(ours, theirs.step(g, w, b), 1e-5 * std::abs(ours));  // the study's digits
  }
}

// cifar10-fast, dawn.py: lr_schedule(step / updates per epoch) / batch_size, weight_decay 5e-4 batch_size.
TEST(Configs, DavidnetsRateAndDecayAreThoseOfDawn) {
  expect_same_step(first_run("davidnet.toml"), {0.4 / 512, 5e-4 * 512});
}

// cifar10-airbench, legacy/airbench94.py: 11.5 and 0.0153 per 1,024 examples over kilostep_scale.
TEST(Configs, AirbenchsRateAndDecayAreThoseOfAirbench94) {
  const double kilostep_scale = 1024 * (1 + 1 / (1 - 0.85)), rate = 11.5 / kilostep_scale;
  expect_same_step(first_run("airbench.toml"), {rate, 0.0153 * 1024 / kilostep_scale / rate});
}

// Its bias_scaler: lr_biases = 64 lr and weight_decay = wd / lr_biases for what has "norm" in its name and is
// trained.
TEST(Configs, AirbenchsNormBiasesHaveTheirOwnRateAndDecay) {
  const RunOptions options = first_run("airbench.toml");
  const OptionView table = options.table();
  const auto factors = [&](const std::string& key) {
    const ParameterInfo norm{"block1.norm1.bias", "block1.norm1", ParameterKind::norm_bias, at::zeros({4})};
    const ParameterInfo whiten{"whiten.bias", "whiten", ParameterKind::bias, at::zeros({4})};
    const ParameterInfo conv{"block1.conv1.weight", "block1.conv1", ParameterKind::weight,
                             at::zeros({4, 4, 3, 3})};
    return factors_of({norm, whiten, conv}, std::get<Factors>(table.at("sgd." + key).get()));
  };
  EXPECT_EQ(factors("lr_factors"), (std::vector<double>{64, 1, 1}));
  EXPECT_EQ(factors("decay_factors"), (std::vector<double>{1.0 / 64, 1, 1}));
}

// The same file: alpha_schedule = 0.95**5 (step / steps)**3 every 5 steps; ours counts the other share.
TEST(Configs, AirbenchsLookaheadIsThatOfAirbench94) {
  const TrainOptions train = first_run("airbench.toml").train;
  EXPECT_EQ(train.hook<LookaheadOptions>().every, 5);
  EXPECT_EQ(train.hook<LookaheadOptions>().schedule, "cubic");
  EXPECT_NEAR(1 - train.hook<LookaheadOptions>().alpha, std::pow(0.95, 5), 1e-12);
}

// The largest distance, over all updates, of the rate from one given by corners (epoch, rate), as
// numpy.interp has it.
double largest_distance(const RunOptions& options, const std::vector<std::pair<double, double>>& corners) {
  const double an_epoch = 50000.0 / static_cast<double>(options.train.batch_size);
  const auto updates = static_cast<int64_t>(std::ceil(options.train.epochs * an_epoch));
  const RateSchedule schedule(options.schedule, options.train.learning_rate, /*gain=*/1,
                              {options.train.batch_size, updates, an_epoch});
  double largest = 0;
  for (int64_t t = 0; t < updates; ++t) {
    const double epoch = static_cast<double>(t) / an_epoch;
    size_t i = 1;
    while (i + 1 < corners.size() && corners[i].first < epoch) ++i;
    const auto& [x0, y0] = corners[i - 1];
    const auto& [x1, y1] = corners[i];
    largest = std::max(largest, std::abs(schedule.at(t) - (y0 + (y1 - y0) * (epoch - x0) / (x1 - x0))));
  }
  return largest;
}

TEST(Configs, RatesTakeTheCourseOfTheirSources) {
  // Within an update: warm-ups count from 1 here, and 488.28 updates of it are 488.
  EXPECT_LT(largest_distance(first_run("davidnet.toml"), {{0, 0}, {5, 0.4}, {24, 0}}), 1.5 * 0.4 / 488);
  // And from 0, not from 0.2 of the peak, as the file says.
  EXPECT_LT(largest_distance(first_run("airbench.toml"), {{0, 0}, {0.23 * 9.9, 1.5}, {9.9, 0.07 * 1.5}}),
            1.5 * 1.5 / 111);
}

}  // namespace
}  // namespace basin
