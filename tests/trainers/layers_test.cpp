// /layers of run.h5: its numbers against plain tensor operations on the weights before and after each update,
// which updates have a row, and what is left of it by a stop, a divergence and a resume.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/run_file.h"
#include "optim/registry.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainers/recorded_run.h"
#include "trainers/hooks/gradient_clipping.h"
#include "trainers/hooks/perturbed_gradient.h"
#include "trainers/tables.h"

namespace basin::testing {
namespace {

using ::testing::ElementsAre;
using Tensors = std::vector<at::Tensor>;

Table layers_of(const TemporaryFolder& folder) {
  return read_run_file(folder / "run.h5").tables.at("layers");
}

/// One entry of a row: column "weight_norm", ..., of parameter p.
double entry(const Table& table, int64_t row, const std::string& name, size_t p) {
  int64_t first = 0;
  for (const Column& column : table.columns) {
    if (column.name == name) return table.rows[static_cast<size_t>(row * table.row_width() + first) + p];
    first += column.width;
  }
  ADD_FAILURE() << "no column " << name;
  return NAN;
}

/// The weights at the start and after every update.
struct Weights : TrainObserver {
  explicit Weights(const TestRun& run) : run_(run) { remember(); }
  void on_update(const UpdateRecord&) override { remember(); }
  void remember() {
    Tensors copies;
    for (const ParameterInfo& p : run_.model->parameter_table()) copies.push_back(p.tensor.detach().clone());
    after.push_back(copies);
  }
  const TestRun& run_;
  std::vector<Tensors> after;
};

void set_weights(TestRun& run, const Tensors& weights) {
  const at::NoGradGuard no_grad;
  for (size_t p = 0; p < weights.size(); ++p) run.model->parameter_table()[p].tensor.copy_(weights[p]);
}

double norm_of(const at::Tensor& tensor) { return tensor.norm().item<double>(); }

double joint_norm_of(const Tensors& tensors) {
  double squares = 0;
  for (const at::Tensor& tensor : tensors) squares += norm_of(tensor) * norm_of(tensor);
  return std::sqrt(squares);
}

/// The gradient that the optimiser saw at `weights`, before clipping: autograd's, with SAM's displaced
/// weights.
Tensors gradient_at(TestRun& by_hand, const Tensors& weights, int64_t update) {
  const int64_t size = by_hand.settings.train.batch_size;
  set_weights(by_hand, weights);
  Tensors gradient = plain_gradient(by_hand, update * size, size);
  if (by_hand.settings.train.hook<PerturbationOptions>().kind != "sam") return gradient;
  Tensors displaced;
  const double step = by_hand.settings.train.hook<PerturbationOptions>().rho / joint_norm_of(gradient);
  for (size_t p = 0; p < weights.size(); ++p) displaced.push_back(weights[p] + step * gradient[p]);
  set_weights(by_hand, displaced);
  return plain_gradient(by_hand, update * size, size);
}

void expect_norms_of_the_weights(const RunSettings& s) {
  const TemporaryFolder folder;
  RecordedRun run(s, folder.path());
  TestRun by_hand(s);
  Weights weights(run);
  run.trainer->observe(weights);
  run.finish();
  const auto& method = find_entry(optimizer_registry(), s.optimizer, "optimizer");
  const bool gradients_here = !method.traits(*method.make_options()).gradients_elsewhere;
  const Table layers = layers_of(folder);
  ASSERT_EQ(layers.row_count(), 4);
  for (int64_t u = 0; u < 4; ++u) {
    const Tensors &before = weights.after[static_cast<size_t>(u)],
                  &after = weights.after[static_cast<size_t>(u + 1)];
    const Tensors gradient = gradient_at(by_hand, before, u);
    if (s.train.hook<GradientClippingOptions>().limit > 0) {
      EXPECT_GT(joint_norm_of(gradient), 2 * s.train.hook<GradientClippingOptions>().limit)
          << "nothing to clip";
    }
    for (size_t p = 0; p < before.size(); ++p) {
      SCOPED_TRACE(fmt::format("update {}, parameter {}", u + 1, p));
      // Sums of some hundred float64 in another order; of 50 gradients in another order; and for the update a
      // difference of weights up to 1e4 times as large.
      EXPECT_NEAR(entry(layers, u, "weight_norm", p) / norm_of(before[p]), 1, 1e-13);
      if (gradients_here) {
        EXPECT_NEAR(entry(layers, u, "gradient_norm", p) / norm_of(gradient[p]), 1, 1e-11);
      }
      EXPECT_NEAR(entry(layers, u, "update_norm", p) / norm_of(after[p] - before[p]), 1, 1e-9);
    }
  }
}

class LayerNorms : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Optimizers, LayerNorms, ::testing::ValuesIn(names_of(optimizer_registry())),
                         [](const auto& info) { return info.param; });

TEST_P(LayerNorms, AreThoseOfTheWeightsBeforeAndAfterEachUpdate) {
  for (const double limit : {0.0, 0.1}) {
    for (const bool sam : {false, true}) {
      if (sam && has_overlap(GetParam())) continue;  // they exclude each other
      SCOPED_TRACE(fmt::format("clip_gradient = {}, SAM: {}", limit, sam));
      RunSettings s = small_settings();
      s.optimizer = GetParam();
      s.train.updates = 4;  // one pass over the 200 examples
      s.train.hook<GradientClippingOptions>().limit = limit;
      if (sam) s.train.hook<PerturbationOptions>() = {.kind = "sam", .rho = 0.3};
      // So small that gradients stay as large as at the start, 4.1.
      s.train.learning_rate = rate_of_first_move(s, 0.002);
      expect_norms_of_the_weights(s);
    }
  }
}

TEST(NormsOfALargeNetwork, AreTakenAtRowsOfLayersAndAtTheLastUpdateAlone) {
  RunSettings s = small_settings();
  s.model_settings = {"hidden=[2050, 2050]"};  // 2,050 x 2,050 weights between them are enough
  s.train.dtype = "float32";
  s.train.updates = 6;
  s.train.layers_every = 4;
  const TemporaryFolder folder;
  RecordedRun run(s, folder.path());
  ASSERT_GT(run.model->parameter_count(), kNormsAtEveryUpdate);
  run.finish();
  ASSERT_EQ(run.listener.updates.size(), 6U);
  for (const UpdateRecord& record : run.listener.updates) {
    const bool taken = record.update == 1 || record.update == 4 || record.update == 6;
    EXPECT_EQ(std::isfinite(record.weight_norm), taken) << record.update;
    EXPECT_EQ(std::isfinite(record.gradient_norm), taken) << record.update;
    EXPECT_EQ(std::isfinite(record.update_norm), taken) << record.update;
    EXPECT_EQ(std::isfinite(record.distance_from_start), taken) << record.update;
  }
  EXPECT_THAT(layers_of(folder).column("update"), ElementsAre(1, 4, 6));
}

// The formulas of two papers, and a method without.
TEST(LayerRatios, AreThePapersFormulaWhereTheMethodHasOne) {
  RunSettings s = small_settings();
  s.train.updates = 1;
  for (const char* optimizer : {"lars", "lamb", "sgd"}) {
    SCOPED_TRACE(optimizer);
    const TemporaryFolder folder;
    s.optimizer = optimizer;
    s.optimizer_settings = {"weight_decay=0.01"};
    RecordedRun run(s, folder.path());
    TestRun by_hand(s);
    Weights weights(run);
    run.finish();
    const Tensors gradient = gradient_at(by_hand, weights.after[0], 0);
    const Table layers = layers_of(folder);
    EXPECT_EQ(layers.columns.back().definition.starts_with("NaN"), s.optimizer == "sgd");
    for (size_t p = 0; p < gradient.size(); ++p) {
      const double w = norm_of(weights.after[0][p]), found = entry(layers, 0, "trust_ratio", p);
      const at::Tensor direction = gradient[p] / (gradient[p].abs() + 1e-6) + 0.01 * weights.after[0][p];
      const double lars = 0.001 * w / (norm_of(gradient[p]) + 0.01 * w), lamb = w / norm_of(direction);
      if (s.optimizer == "sgd" || gradient[p].dim() == 1) {
        EXPECT_TRUE(std::isnan(found)) << "no ratio, or a bias, which the default excludes";
      } else {
        // Gradients near 1e-6, LAMB's eps, carry their rounding of 1e-11 into its direction.
        EXPECT_NEAR(found / (s.optimizer == "lars" ? lars : lamb), 1, 1e-9);
      }
    }
  }
}

std::vector<double> recorded_updates(const RunSettings& s) {
  const TemporaryFolder folder;
  RecordedRun run(s, folder.path());
  run.finish();
  return layers_of(folder).column("update");
}

TEST(LayerCadence, IsTheFirstEveryKthAndTheLast) {
  RunSettings s = small_settings();
  s.train.updates = 12;
  s.train.layers_every = 5;
  EXPECT_THAT(recorded_updates(s), ElementsAre(1, 5, 10, 12));
  s.train.layers_every = 6;
  EXPECT_THAT(recorded_updates(s), ElementsAre(1, 6, 12)) << "the last is on the cadence: once";
  s.train.layers_every = 100;
  EXPECT_THAT(recorded_updates(s), ElementsAre(1, 12));
  s.train.updates = 1;
  EXPECT_THAT(recorded_updates(s), ElementsAre(1));
}

TEST(LayerCadence, OfZeroGivesAHundredToTwoHundredRows) {
  TrainOptions options;
  const auto every = [&](int64_t updates) { return layers_every(options, updates); };
  EXPECT_EQ(every(1), 1);
  EXPECT_EQ(every(200), 1);
  EXPECT_EQ(every(201), 2);
  EXPECT_EQ(every(100000), 500);
  options.layers_every = 7;
  EXPECT_EQ(every(100000), 7);
  EXPECT_EQ(every(1), 7);
}

TEST(LayerCadence, IsStatedInTheFile) {
  const TemporaryFolder folder;
  RunSettings s = small_settings();
  s.train.updates = 401;
  s.train.batch_size = 4;
  s.train.learning_rate = 0.001;
  RecordedRun run(s, folder.path());
  run.finish();
  const Table layers = layers_of(folder);
  EXPECT_EQ(layers.attributes, (decltype(layers.attributes){{"every", int64_t{3}}}));
  EXPECT_EQ(layers.row_count(), 1 + 401 / 3 + 1) << "the first, 3 to 399, and the last";
}

TEST(LayerCadence, EndsWhereTheTargetIsReached) {
  RunSettings s = small_settings();
  s.train.protocol = "B";
  s.train.target_loss = 1.6;
  s.train.check_every = 100;
  s.train.max_gradients = 8000;
  s.train.layers_every = 1000;
  const TemporaryFolder folder;
  RecordedRun run(s, folder.path());
  const TrainResult result = run.finish();
  ASSERT_EQ(result.status, RunState::finished);
  EXPECT_THAT(layers_of(folder).column("update"), ElementsAre(1, number(result, "updates")));
}

/// Too high a rate on squared errors: the loss grows by a factor an update until it is beyond the limit.
RunSettings diverging() {
  RunSettings s = small_settings();
  s.train.loss = "mse";
  s.train.updates = 50;
  s.train.learning_rate = 2;
  s.train.divergence_loss = 1e6;
  s.train.layers_every = 1000;
  s.optimizer_settings = {"momentum=0"};
  return s;
}

// The checkpoint of the stop falls just before the loss that ends the run, so that the process that finds it
// has made no update of its own.
TEST(LayerRows, OfADivergedRunAreThoseUntilThenAlsoWhereItWasResumedJustBefore) {
  const TemporaryFolder quiet, disturbed;
  RecordedRun undisturbed(diverging(), quiet.path());
  const TrainResult expected = undisturbed.finish();
  ASSERT_EQ(expected.status, RunState::diverged);
  const int64_t last = undisturbed.trainer->updates_done();
  ASSERT_GT(last, 1);
  EXPECT_THAT(layers_of(quiet).column("update"), ElementsAre(1, last));
  {
    RecordedRun first(diverging(), disturbed.path());
    first.recorder.conclude(first.run_until(last));
    EXPECT_THAT(layers_of(disturbed).column("update"), ElementsAre(1, last)) << "a stopped run's newest, too";
  }
  RecordedRun second(diverging(), disturbed.path());
  ASSERT_TRUE(second.resumed);
  EXPECT_EQ(second.finish().status, RunState::diverged);
  EXPECT_EQ(second.trainer->updates_done(), last);
  expect_same_tables(read_run_file(disturbed / "run.h5"), read_run_file(quiet / "run.h5"));
}

}  // namespace
}  // namespace basin::testing
