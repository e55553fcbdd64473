// What a GPU does with a step, on the CPU: captured work is kept and called again, where a CUDA graph would
// be replayed.
#include "trainers/graphed_step.h"

#include <ATen/record_function.h>
#include <gmock/gmock.h>

#include <atomic>

#include "tests/trainers/test_run.h"
#include "trainers/batch_gradient.h"
#include "trainers/hooks/perturbed_gradient.h"

namespace basin::testing {
namespace {

struct KeptWork : StepCapture {
  int64_t runs = 0, captures = 0, replays = 0;
  void run(const std::function<void()>& work) override {
    ++runs;
    work();
  }
  std::function<void()> capture(const std::function<void()>& work) override {
    ++captures;
    return [this, work] {
      ++replays;
      work();
    };
  }
};

TEST(GraphedStep, CapturesAShapeThatComesUpAThirdTime) {
  const auto kept = std::make_shared<KeptWork>();
  std::vector<int64_t> firsts;
  GraphedStep step([&](const at::Tensor& indices,
                       int64_t size) { firsts.push_back(1000 * size + indices[0][0].item<int64_t>()); },
                   at::kCPU, kept);
  for (int64_t i = 0; i < 5; ++i) step.run(at::full({2, 3}, i, at::kLong), 3);
  EXPECT_EQ(kept->runs, 2);
  EXPECT_EQ(kept->captures, 1);
  EXPECT_EQ(kept->replays, 3);
  EXPECT_THAT(firsts, ::testing::ElementsAre(3000, 3001, 3002, 3003, 3004));
  step.run(at::full({2, 3}, 7, at::kLong), 4);  // as many examples of a larger batch
  EXPECT_EQ(kept->runs, 3);
  EXPECT_EQ(firsts.back(), 4007);
  for (int64_t i = 0; i < 3; ++i) step.run(at::full({2, 5}, i, at::kLong), 4);
  EXPECT_EQ(kept->captures, 2);
}

TEST(GraphedStep, CapturesAFewShapesAndCallsTheRest) {
  const auto kept = std::make_shared<KeptWork>();
  int64_t done = 0;
  GraphedStep step([&](const at::Tensor&, int64_t) { ++done; }, at::kCPU, kept);
  const int64_t shapes = GraphedStep::kMostGraphs + 4;
  for (int64_t n = 1; n <= shapes; ++n)
    for (int i = 0; i < 4; ++i) step.run(at::zeros({2, n}, at::kLong), n);
  EXPECT_EQ(kept->captures, GraphedStep::kMostGraphs);
  EXPECT_EQ(kept->replays, 2 * GraphedStep::kMostGraphs);
  EXPECT_EQ(done, 4 * shapes);
}

TEST(GraphedStep, SaysWhyNothingIsCaptured) {
  EXPECT_EQ(why_eager(true, at::kCUDA, true, false), "");
  EXPECT_EQ(why_eager(true, at::kCPU, true, true), "no GPU");
  EXPECT_EQ(why_eager(false, at::kCUDA, true, true), "runtime.cuda_graph = false");
  EXPECT_EQ(why_eager(true, at::kCUDA, true, true), "dropout masks are drawn on the host");
  EXPECT_EQ(why_eager(true, at::kCUDA, false, false),
            "the network is a script, which may read from the device");
  TestRun run(small_settings());
  EXPECT_EQ(run.trainer->execution(), "eager: no GPU");
}

struct Case {
  std::string name;
  RunSettings settings;
  std::vector<int64_t> sizes;  // of batches, taken one after the other from the stream
  int64_t captures, replays;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

std::vector<Case> cases() {
  RunSettings plain = small_settings();
  plain.model = "small_cnn";
  plain.model_settings = {"widths=[3, 4, 5]"};
  plain.train.dtype = "float32";
  plain.train.batch_size = 48;
  plain.train.micro_batch = 20;
  RunSettings augmented = plain;
  augmented.data.augmentation = "crop_flip";
  augmented.data.padding_mode = "reflect";
  augmented.data.flip = "alternating";
  augmented.data.cutout = 5;
  augmented.train.autocast = "bfloat16";
  augmented.train.label_smoothing = 0.1;
  RunSettings ghosts = plain;
  ghosts.model = "resnet20";
  ghosts.model_settings = {"width=2", "norm=batch"};
  ghosts.train.ghost_batch = 10;
  RunSettings perturbed = plain;
  perturbed.train.hook<PerturbationOptions>() = {.kind = "sam", .rho = 0.1, .examples = 24};
  RunSettings merged = plain;  // 200 examples: one per batch, whatever is merged
  merged.train.batch_size = 500;
  const std::vector<int64_t> four(4, 48);
  return {{"plain", plain, {48, 48, 48, 48, 48}, 1, 3},  // the fifth crosses the end of an epoch
          {"growing", plain, {24, 24, 24, 48, 48, 48, 48}, 2, 3},
          {"augmented", augmented, four, 1, 2},
          {"ghosts", ghosts, four, 1, 2},
          {"perturbed", perturbed, {48, 48}, 1, 6},
          {"merged", merged, {500, 500, 500, 500}, 1, 2}};
}

class GraphedGradient : public ::testing::TestWithParam<Case> {};

std::vector<at::Tensor> gradients_of_model(const Model& model) {
  std::vector<at::Tensor> gradients;
  for (const ParameterInfo& p : model.parameter_table()) gradients.push_back(p.tensor.grad().clone());
  return gradients;
}

BatchPlan plan_of(const TestRun& run) {
  return plan_batches(run.settings.train, run.settings.data, run.model->has_dropout(),
                      run.model->has_batch_statistics(), 0);
}

// The same arithmetic on the same inputs: not a bit may differ until a batch has fewer distinct examples than others of its size. It is
// filled up with examples that count 0 times, so that it has their graph, and float32 is summed in other groups.
TEST_P(GraphedGradient, IsThatOfTheLoops) {
  const Case& c = GetParam();
  TestRun run(c.settings), other(c.settings);
  const BatchPlan plan = plan_of(run);
  const auto kept = std::make_shared<KeptWork>();
  BatchGradient loops(run.model, run.data, run.settings.data, run.settings.train, plan, at::kFloat, at::kCPU,
                      {}),
      graphed(other.model, other.data, other.settings.data, other.settings.train, plan, at::kFloat, at::kCPU,
              {"", /*gather=*/true, kept});
  const PerturbationOptions& perturbation = c.settings.train.hook<PerturbationOptions>();
  std::vector<std::unique_ptr<PerturbedGradient>> rules;
  if (perturbation.on()) {
    for (const auto& [of, gradient] : {std::pair{&run, &loops}, {&other, &graphed}}) {
      rules.push_back(std::make_unique<PerturbedGradient>(perturbation, *of->model, *gradient));
      gradient->add_rule(*rules.back()->gradient_rule());
    }
  }
  ExampleStream stream(1, run.data.train.size());
  BatchPlace place;
  bool same_bits = true;
  for (const int64_t size : c.sizes) {
    const std::vector<Batch> groups = batch_groups(stream, place.start, size, plan);
    const auto rows = static_cast<int64_t>(groups.front().examples.size());
    same_bits =
        same_bits && (!plan.merge_duplicates || rows == std::min(groups.front().size, run.data.train.size()));
    const double tolerance = same_bits ? 0 : 1e-5;
    const double loss = loops.compute(groups, place);
    EXPECT_NEAR(graphed.compute(groups, place), loss, tolerance * loss);
    place.update += 1;
    place.start += size;
    const auto expected = gradients_of_model(*run.model), found = gradients_of_model(*other.model);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_GT(expected[i].abs().max().item<double>(), 0) << i;
      EXPECT_LE((found[i] - expected[i]).norm().item<double>(), tolerance * expected[i].norm().item<double>())
          << run.model->parameter_table()[i].name;
    }
    // Weights change in place between updates.
    const at::NoGradGuard no_grad;
    for (const TestRun* of : {&run, &other})
      for (const ParameterInfo& p : of->model->parameter_table())
        at::Tensor(p.tensor).sub_(p.tensor.grad(), 0.1);
  }
  EXPECT_EQ(kept->captures, c.captures);
  EXPECT_EQ(kept->replays, c.replays);
}

INSTANTIATE_TEST_SUITE_P(Batches, GraphedGradient, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

std::atomic<int64_t> reads{0};

std::unique_ptr<at::ObserverContext> count_reads(const at::RecordFunction& call) {
  const std::string name = call.name();
  if (name == "aten::_local_scalar_dense" || name == "aten::nonzero") ++reads;
  return nullptr;
}

// A number that the host reads waits for the device, and ends a capture.
TEST(GraphedStep, GradientReadsItsLossAlone) {
  for (const auto& [model, setting] :
       {std::pair{"small_cnn", "widths=[3, 4]"}, {"resnet20", "norm=batch"}, {"mlp", "hidden=[5]"}}) {
    RunSettings s = small_settings();
    s.model = model;
    s.model_settings = {setting};
    s.data.augmentation = "crop_flip";
    s.data.cutout = 3;
    s.train.batch_size = 16;
    TestRun run(s);
    const BatchPlan plan = plan_of(run);
    BatchGradient gradient(run.model, run.data, s.data, s.train, plan, at::kDouble, at::kCPU,
                           {"", /*gather=*/true, nullptr});
    ExampleStream stream(1, run.data.train.size());
    const auto groups = batch_groups(stream, 0, 16, plan);
    reads = 0;
    const at::CallbackHandle handle =
        at::addGlobalCallback(at::RecordFunctionCallback(&count_reads)
                                  .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
    gradient.compute(groups, {0, 0});
    at::removeCallback(handle);
    EXPECT_EQ(reads, 1) << model;
  }
}

}  // namespace
}  // namespace basin::testing
