// The published rules in docs/optimizers.md as its table says them in study lines, against numbers worked out
// by hand from the sources.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "runs/parts.h"
#include "sweep/cost_model.h"
#include "tests/support/environment.h"
#include "tests/support/tiny_models.h"
#include "trainers/batch_schedule.h"

namespace basin {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kImageNet = 1281167, kCifar = 50000;

/// The backticked `key = value` of the second cell of each row of the table below "| source | study |", by
/// the first cell.
std::map<std::string, std::vector<std::string>> documented_rules() {
  std::istringstream text(read_file(testing::source_folder() + "/docs/optimizers.md"));
  std::map<std::string, std::vector<std::string>> rules;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (line.rfind("| source | study |", 0) == 0) inside = true;
    if (!inside || line.rfind("| source", 0) == 0 || line.rfind("|---", 0) == 0) continue;
    if (line.rfind("| ", 0) != 0) break;
    const size_t second = line.find(" | "), third = line.find(" | ", second + 3);
    const std::string study = line.substr(second + 3, third - second - 3);
    std::vector<std::string>& lines = rules[line.substr(2, second - 2)];
    for (size_t open = study.find('`'); open != std::string::npos;) {
      const size_t close = study.find('`', open + 1);
      lines.push_back(study.substr(open + 1, close - open - 1));
      open = study.find('`', close + 1);
    }
  }
  return rules;
}

RunOptions options_of(const std::string& source, const std::vector<std::string>& more) {
  const std::string study = fmt::format("{}\n", fmt::join(documented_rules().at(source), "\n"));
  RunOptions options = run_options_from(parse_toml(study, source), more);
  check(options);
  return options;
}

/// The run's rates on n training images, composed as the trainer composes them.
RateSchedule rates_of(const RunOptions& options, int64_t n) {
  const BatchPlan plan =
      plan_batches(options.train, options.data, false, false, optimizer_traits(options).overlap);
  const auto network = testing::tiny_mlp();
  const double gain = build_optimizer(options, *network)->gain();
  return {options.schedule, options.train.learning_rate, gain,
          run_shape(options.train, BatchSchedule(options.train, plan, n), n)};
}

int64_t updates_of(const RunOptions& options, int64_t n) {
  const BatchPlan plan =
      plan_batches(options.train, options.data, false, false, optimizer_traits(options).overlap);
  return BatchSchedule(options.train, plan, n).updates();
}

/// One batch size of a rule, and what must come of it.
struct Expectation {
  std::string source;
  int64_t batch_size = 0, images = 0;
  int64_t updates = 0, warmup = 0;
  double peak = 0;
  std::vector<std::pair<int64_t, double>> rates;  // at updates, from 0
  std::vector<std::string> more = {};
};

void PrintTo(const Expectation& e, std::ostream* out) { *out << e.source << " B=" << e.batch_size; }

const std::vector<Expectation>& expectations() {
  static const std::vector<Expectation> rows{
      // 156.3925 updates per epoch; 3.2 = 0.1 x 32; from 0.1, 3.1/782 per update; 30, 60, 80 epochs are 4691.8,
      // 9383.5, 12511.4.
      {"Goyal et al. 2017",
       8192,
       kImageNet,
       14076,
       782,
       3.2,
       {{0, 0.1 + 3.1 / 782},
        {390, 1.65},
        {781, 3.2},
        {4691, 3.2},
        {4692, 0.32},
        {9384, 0.032},
        {12511, 0.0032}}},
      // At the base batch there is nothing to rise to.
      {"Goyal et al. 2017", 256, kImageNet, 450411, 25023, 0.1, {{0, 0.1}, {25022, 0.1}, {150137, 0.01}}},
      // sqrt(16); 16 x 200 epochs of 24.414 updates; 81, 122 and 164 epochs of 16.
      {"Hoffer et al. 2017",
       2048,
       kCifar,
       78125,
       0,
       0.4,
       {{0, 0.4}, {31640, 0.4}, {31641, 0.04}, {47656, 0.004}, {64063, 0.0004}, {78124, 0.0004}}},
      // ceil(100/128) = 1, and a rate by the root of 100/128.
      {"Hoffer et al. 2017",
       100,
       kCifar,
       100000,
       0,
       0.1 * 0.88388347648318440,
       {{40500, 0.01 * 0.88388347648318440}}},
      {"Hoffer et al. 2017",
       129,
       kCifar,
       155039,
       0,
       0.1 * 1.0038986502630632,
       {{0, 0.1 * 1.0038986502630632}}},
      // (1 - t/T)^2 of 20 updates at the default 10 epochs of 500 images.
      {"You et al. 2017 (LARS)",
       250,
       500,
       20,
       0,
       8,
       {{0, 8}, {5, 4.5}, {10, 2}, {19, 0.02}},
       {"learning_rate=8"}},
      // README: 512 with 2^2 and 10/2^6 epochs, 1024 with 2^2.5 and 10/2^5, 4096 with 2^3.5 and 10/2^3, 8192
      // with 2^4 and 10/2^2.
      {"NUS LARS", 512, kImageNet, 225206, 391, 4, {{0, 4.0 / 391}, {390, 4}, {391, 4}}},
      {"NUS LARS", 1024, kImageNet, 112603, 391, 5.656854249492381, {{390, 5.656854249492381}}},
      {"NUS LARS", 4096, kImageNet, 28151, 391, 11.313708498984761, {{195, 11.313708498984761 * 196 / 391}}},
      // Half of the 13,685 updates after the warm-up: a quarter of the rate, but for half an update.
      {"NUS LARS",
       8192,
       kImageNet,
       14076,
       391,
       16,
       {{0, 16.0 / 391},
        {390, 16},
        {7233, 16 * (6843.0 / 13685) * (6843.0 / 13685)},
        {14075, 16.0 / 13685 / 13685}}},
      {"torchlars", 256, kImageNet, 450411, 0, 0.2, {{0, 0.2}}},
      {"torchlars", 8192, kImageNet, 14076, 782, 12.8, {{0, 12.8 / 782}, {781, 12.8}}},
      {"torchlars", 16384, kImageNet, 7038, 391, 25, {{390, 25}}},
      {"torchlars", 32768, kImageNet, 3519, 195, 29, {{0, 29.0 / 195}, {194, 29}, {195, 29}, {1857, 7.25}}},
      // 78.1962, 39.0981 and 19.549 updates per epoch.
      {"TF tpu", 16384, kImageNet, 7038, 391, 25, {{0, 25.0 / 391}, {390, 25}}},
      {"TF tpu", 32768, kImageNet, 3519, 469, 34, {{0, 34.0 / 469}, {468, 34}, {1994, 8.5}}},
      {"TF tpu", 65536, kImageNet, 1760, 313, 41, {{312, 41}}},
      // 1251.14 updates per epoch; 8.5 stays above 1e-5 of itself.
      {"MLPerf ResNet", 1024, kImageNet, 51297, 6256, 8.5, {{0, 8.5 / 6256}, {6255, 8.5}}, {"epochs=41"}},
      // 312.785 per epoch; at the last of the 11,573 after the warm-up 1e-4 and next to nothing.
      {"MLPerf ResNet",
       4096,
       kImageNet,
       13137,
       1564,
       10,
       {{1563, 10}, {13136, 1e-4 + (10 - 1e-4) / 11573.0 / 11573.0}}},
      {"MLPerf ResNet", 32768, kImageNet, 1643, 977, 31.2, {{976, 31.2}}},
      // 5/(2^3 10^3) and 1/320 at 512; 5/10^3 and 1/5 at 32K. 64,000 and 1,000 updates.
      {"You et al. 2019, untuned LAMB",
       512,
       32768000,
       64000,
       200,
       6.25e-4,
       {{0, 6.25e-4 / 200}, {199, 6.25e-4}, {32100, 3.125e-4}},
       {"epochs=1"}},
      {"You et al. 2019, untuned LAMB",
       32768,
       32768000,
       1000,
       200,
       5e-3,
       {{99, 2.5e-3}, {200, 5e-3}, {600, 2.5e-3}, {999, 6.25e-6}},
       {"epochs=1"}},
      {"Malladi et al. 2022", 1024, kCifar, 489, 0, 2e-3, {{0, 2e-3}}, {"warmup=0"}},
      {"Granziol et al. 2020, SGD", 512, kCifar, 977, 49, 0.4, {{48, 0.4}}},
      {"Granziol et al. 2020, Adam", 512, kCifar, 977, 49, 0.002, {{48, 0.002}}},
      // sqrt(4).
      {"Su 2025, Muon", 1024, kCifar, 489, 24, 0.04, {{23, 0.04}}},
      // lr/(1 - m) = 0.5 x 4 at B = 512, whatever the momentum.
      {"Smith & Le 2018", 512, kCifar, 977, 49, 0.2, {{48, 0.2}}, {"sgd.momentum=0.9"}},
      {"Smith & Le 2018", 512, kCifar, 977, 49, 1, {{48, 1}}, {"sgd.momentum=0.5"}},
      {"Jastrzębski et al. 2018", 512, kCifar, 977, 0, 0.4, {{0, 0.4}, {976, 0.4}}},
      {"Zhang et al. 2019", 256, kCifar, 1954, 0, 0.05, {{0, 0.05}, {1953, 0.05}}},
      {"Zhang et al. 2019", 256, kCifar, 1954, 0, 0.5, {{0, 0.5}}, {"sgd.momentum=0"}},
      // 97.656 updates per epoch. np.interp([t], [0, 5, 24], [0, 0.4, 0]) at t+1 before the peak and at t
      // after it, in epochs but for the
      // rounding of 488.28 and 2343.75 updates.
      {"DavidNet",
       512,
       kCifar,
       2344,
       488,
       0.4,
       {{0, 0.4 / 488}, {243, 0.2}, {487, 0.4}, {1416, 0.2}, {2343, 0.4 / 1856}}},
      // 400 + 4000: a quarter of the cosine at 1,400, the half at 2,400, and the end at (1 + cos 0.64975
      // pi)/2.
      {"Geiping et al. 2022",
       50000,
       kCifar,
       3000,
       400,
       0.4,
       {{0, 0.001},
        {399, 0.4},
        {400, 0.4},
        {1400, 0.34142135623730951},
        {2400, 0.2},
        {2999, 0.10934188701965125}}},
      {"Geiping et al. 2022", 50000, kCifar, 3000, 400, 0.8, {{2400, 0.4}}, {"learning_rate=0.8"}},
  };
  return rows;
}

class LearningRateRule : public ::testing::TestWithParam<Expectation> {};
INSTANTIATE_TEST_SUITE_P(Documented, LearningRateRule, ::testing::ValuesIn(expectations()),
                         [](const auto& info) {
                           std::string name = std::to_string(info.index);
                           for (const char c : info.param.source)
                             if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
                           return name;
                         });

TEST_P(LearningRateRule, HasTheSourcesRates) {
  const Expectation& e = GetParam();
  std::vector<std::string> sets{"batch_size=" + std::to_string(e.batch_size)};
  sets.insert(sets.end(), e.more.begin(), e.more.end());
  const RunOptions options = options_of(e.source, sets);
  const RateSchedule rates = rates_of(options, e.images);
  EXPECT_EQ(updates_of(options, e.images), e.updates);
  EXPECT_EQ(rates.warmup_updates(), e.warmup);
  EXPECT_NEAR(rates.peak(), e.peak, 1e-15 * e.peak);  // two or three roundings
  for (const auto& [update, rate] : e.rates)
    EXPECT_NEAR(rates.at(update), rate, 1e-12 * rate) << "update " << update;  // cancellation in 1 - s
}

TEST(LearningRateRules, EveryDocumentedRowHasItsNumbersAndIsAStudy) {
  std::set<std::string> documented, expected;
  for (const auto& [source, lines] : documented_rules()) {
    documented.insert(source);
    EXPECT_GE(lines.size(), 4u) << source;
  }
  for (const Expectation& e : expectations()) expected.insert(e.source);
  EXPECT_EQ(documented, expected);
  EXPECT_THROW(options_of("torchlars", {"batch_size=4096"}), ConfigError);
  EXPECT_NO_THROW(options_of("Geiping et al. 2022", {}));
}

TEST(LearningRateRules, MalladisOptimiserHasTheScaledConstants) {
  const RunOptions options = options_of("Malladi et al. 2022", {"batch_size=1024"});
  RunOptions copy = options;
  OptionTable given, scaled;
  copy.optimizers.bind_only(given, "adam");
  const std::unique_ptr<AnyOptions> of_run = scaled_optimizer_options(options);
  of_run->bind(scaled);
  EXPECT_EQ(std::get<double>(given.at("adam.beta2").get()), 0.999);  // the study's options stay as given
  EXPECT_NEAR(std::get<double>(scaled.at("beta1").get()), 0.6, 1e-15);
  EXPECT_NEAR(std::get<double>(scaled.at("beta2").get()), 0.996, 1e-15);
  EXPECT_EQ(std::get<double>(scaled.at("eps").get()), 5e-9);
  // The optimiser is made of them: 2 (1 + beta1)/(1 - beta1) is 8, and 38 at the base batch.
  const auto network = testing::tiny_mlp();
  EXPECT_NEAR(build_optimizer(options, *network)->stability_limit(), 8, 1e-13);
  EXPECT_NEAR(
      build_optimizer(options_of("Malladi et al. 2022", {"batch_size=256"}), *network)->stability_limit(), 38,
      1e-13);
}

std::string refusal(const std::vector<std::string>& sets) {
  try {
    check(run_options_from(parse_toml("", "study.toml"), sets));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(LearningRateRules, ContradictionsAreRefusedBeforeAnyRun) {
  EXPECT_THAT(refusal({"optimizer=adam", "scaling_rule=malladi", "batch_size=4096"}),
              HasSubstr("adam.beta1"));
  EXPECT_THAT(refusal({"optimizer=sgd", "scaling_rule=malladi"}), HasSubstr("beta1"));
  EXPECT_THAT(refusal({"scaling_rule=tpu"}), HasSubstr("learning_rate = 0.1"));
  EXPECT_THAT(refusal({"regime_batch=128", "protocol=B"}), HasSubstr("regime_batch = 128"));
  EXPECT_THAT(refusal({"warmup=5"}), HasSubstr("schedule_unit"));
  EXPECT_THAT(refusal({"schedule_unit=updates", "warmup=400", "horizon=300"}), HasSubstr("horizon = 300"));
}

TEST(LearningRateRules, TheForecastCountsTheAdaptedRegime) {
  const auto work = [](const std::string& text) {
    return plan_work(expand(parse_study(text, "s.toml", {})).at(0), {5000, 0, 1000}, false);
  };
  // ceil(1000/128) = 8 times 2 epochs of 5 updates.
  const CellWork adapted = work("epochs = 2\nbatch_size = 1000\nregime_batch = 128\n");
  EXPECT_EQ(adapted.updates, 80);
  EXPECT_EQ(adapted.gradients, 80000);
  EXPECT_EQ(work("epochs = 2\nbatch_size = 1000\n").updates, 10);
}

}  // namespace
}  // namespace basin
