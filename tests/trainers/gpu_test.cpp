// Training on a CUDA device against the CPU, and with graphs against without. Without a device the Gpu suite
// is skipped.
#include <ATen/Context.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>

#include <atomic>

#include "core/runtime.h"
#include "data/augmentation.h"
#include "data/load.h"
#include "data/network_inputs.h"
#include "data/resident.h"
#include "tests/support/number_set.h"
#include "tests/support/rank_threads.h"
#include "tests/trainers/test_run.h"
#include "trainers/hooks/gradient_clipping.h"
#include "trainers/hooks/noise_gauge.h"
#include "trainers/hooks/perturbed_gradient.h"
#include "trainers/workers/stale_options.h"

namespace basin::testing {
namespace {

class GpuTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!at::hasCUDA() || at::getNumGPUs() == 0)
      GTEST_SKIP() << "NO CUDA DEVICE: training on a GPU is not checked here";
    apply_runtime({.device = "cuda", .threads = 1});
  }
};

RunSettings on_gpu(const std::string& model, const std::vector<std::string>& model_settings) {
  RunSettings s = small_settings();
  s.model = model;
  s.model_settings = model_settings;
  s.device = at::kCUDA;
  s.train.updates = 8;
  s.train.batch_size = 96;
  s.train.micro_batch = 40;
  s.train.ghost_batch = 20;
  s.train.dtype = "float32";
  s.data.augmentation = "crop_flip";
  s.data.cutout = 4;
  return s;
}

std::vector<RunSettings> kinds() {
  RunSettings plain = on_gpu("small_cnn", {"widths=[4, 8]"});
  RunSettings merged = plain;
  merged.data.augmentation = "none";
  merged.data.cutout = 0;
  merged.train.batch_milestones = {0.3, 0.7};
  merged.train.batch_factor = 2;
  merged.train.hook<NoiseGaugeOptions>().every = 2;  // two kinds of step, captured each
  RunSettings ghosts = on_gpu("resnet20", {"width=4", "norm=batch"});
  RunSettings rounded = ghosts;
  rounded.train.autocast = "bfloat16";
  RunSettings perturbed = plain;
  perturbed.train.hook<PerturbationOptions>() = {.kind = "asam", .rho = 0.5, .examples = 48};
  perturbed.train.hook<GradientClippingOptions>().limit = 1;
  RunSettings dropout = on_gpu("keskar_c1", {"width=2", "hidden=[8]", "norm=none", "dropout=0.5"});
  RunSettings stale = plain;
  stale.train.hook<StaleGradientOptions>() = {
      .mode = "ssp", .workers = 3, .bound = 1, .delays = "exponential", .straggler = 1};
  return {plain, merged, ghosts, rounded, perturbed, dropout, stale};
}

// Bytes are looked up in one table and moved: nothing is rounded.
TEST_F(GpuTraining, InputsHaveTheBitsOfTheCpu) {
  DataOptions options;
  options.augmentation = "crop_flip";
  for (const char* padding : {"zeros", "reflect"}) {
    options.padding_mode = padding;
    options.flip = "alternating";
    options.cutout = 7;
    const Dataset data = load_dataset(options), there = on_device(data, at::kCUDA);
    const Augmentation augmentation(options, 1, data.train);
    const std::vector<int64_t> examples{17, 4, 4999, 17}, positions{3, 5000, 70, 12345};
    const at::Tensor index = at::tensor(examples, at::kLong), draws = augmentation.draws(positions, examples);
    for (const auto dtype : {at::kFloat, at::kDouble}) {
      const at::Tensor here =
          augmentation.apply(network_inputs(data, data.train, index, dtype, at::kCPU), draws);
      const at::Tensor found = augmentation.apply(
          gathered_inputs(there, there.train, index.to(at::kCUDA), dtype), draws.to(at::kCUDA));
      EXPECT_TRUE(found.is_cuda() && found.is_contiguous(at::MemoryFormat::ChannelsLast));
      EXPECT_TRUE(at::equal(found.cpu(), here));
    }
  }
}

// Numbers are normalised in float64 there too, by one difference and one quotient; tokens are moved.
TEST_F(GpuTraining, NumbersAndTokensHaveTheBitsOfTheCpu) {
  DataOptions options;
  options.set = "moby_dick";
  const at::Tensor index = at::tensor({17, 4, 49, 17}, at::kLong);
  for (const Dataset& data : {number_set(), load_dataset(options)}) {
    const Dataset there = on_device(data, at::kCUDA);
    for (const auto dtype : {at::kFloat, at::kDouble}) {
      const at::Tensor here = network_inputs(data, data.train, index, dtype, at::kCPU);
      const at::Tensor found = gathered_inputs(there, there.train, index.to(at::kCUDA), dtype);
      EXPECT_TRUE(found.is_cuda());
      EXPECT_TRUE(at::equal(found.cpu(), here));
      EXPECT_TRUE(at::equal(network_inputs(there, there.train, index, dtype, at::kCUDA).cpu(), here));
    }
  }
}

TEST_F(GpuTraining, GraphsChangeNoBit) {
  for (RunSettings s : kinds()) {
    TestRun graphs(s);
    s.cuda_graphs = false;
    TestRun eager(s);
    EXPECT_EQ(graphs.trainer->execution(),
              graphs.model->has_dropout() ? "eager: dropout masks are drawn on the host" : "graph");
    EXPECT_EQ(eager.trainer->execution(), "eager: runtime.cuda_graph = false");
    EXPECT_EQ(graphs.run().status, RunState::finished);
    eager.run();
    EXPECT_TRUE(at::equal(graphs.weights(), eager.weights())) << s.model;
    for (size_t i = 0; i < eager.listener.updates.size(); ++i)
      EXPECT_EQ(graphs.listener.updates[i].loss, eager.listener.updates[i].loss) << s.model << ' ' << i;
  }
}

// Threads as ranks that share the device: one at a time may capture, so there are no graphs. Float64: another order of sums, five updates.
TEST_F(GpuTraining, TwoRanksGiveTheRunOfOne) {
  RunSettings s = on_gpu("resnet20", {"width=4", "norm=batch"});
  s.train.dtype = "float64";
  s.train.updates = 5;
  s.cuda_graphs = false;
  TestRun alone(s);
  alone.run();
  EXPECT_THAT(on_ranks(2,
                       [&](RankGroup& ranks) {
                         RunSettings mine = s;
                         mine.ranks = &ranks;
                         mine.device = ranks.use_device(at::kCUDA);
                         TestRun run(mine);
                         run.run();
                         const double off = relative_difference(run.weights(), alone.weights());
                         if (!(off <= 1e-12)) throw std::runtime_error(fmt::format("{} off", off));
                       }),
              ::testing::Each(""));
}

TEST_F(GpuTraining, ResumedRunsHaveTheSameBits) {
  for (const RunSettings& s : kinds()) {
    TestRun undisturbed(s), first(s), second(s);
    undisturbed.run();
    first.run_until(4);
    second.trainer->restore(first.listener.checkpoints.at("latest"));
    second.run();
    EXPECT_TRUE(at::equal(second.weights(), undisturbed.weights())) << s.model;
  }
}

// Sums in another order, and multiply-adds fused: 1e-15 per update in float64, grown by eight of them.
TEST_F(GpuTraining, AgreesWithTheCpuInFloat64) {
  for (RunSettings s : kinds()) {
    s.train.autocast = "none";
    s.train.dtype = "float64";
    TestRun there(s);
    s.device = at::kCPU;
    TestRun here(s);
    const TrainResult a = there.run(), b = here.run();
    EXPECT_LE(relative_difference(there.weights(), here.weights()), 1e-9) << s.model;
    EXPECT_NEAR(number(a, "test_loss"), number(b, "test_loss"), 1e-8) << s.model;
    EXPECT_EQ(number(a, "test_acc"), number(b, "test_acc")) << s.model;
  }
}

TEST_F(GpuTraining, Bfloat16IsNearFloat32) {
  RunSettings s = on_gpu("small_cnn", {"widths=[4, 8]"});
  TestRun exact(s);
  s.train.autocast = "bfloat16";
  TestRun rounded(s);
  const at::Tensor start = exact.weights();
  exact.run();
  rounded.run();
  // Eight updates, each with a gradient some 3 % off (tests/trainers/autocast_test.cpp).
  const double moved = (exact.weights() - start).norm().item<double>();
  const double apart = (rounded.weights() - exact.weights()).norm().item<double>();
  EXPECT_LT(apart, 0.15 * moved);
  EXPECT_GT(apart, 1e-5 * moved);
}

std::atomic<int64_t> numbers_read{0};

std::unique_ptr<at::ObserverContext> count_numbers_read(const at::RecordFunction& call) {
  if (std::string(call.name()) == "aten::_local_scalar_dense") ++numbers_read;
  return nullptr;
}

// The loss before the update; the optimiser's report and the distance from the start are copies.
TEST_F(GpuTraining, ReadsOneNumberAnUpdateWhateverTheNetwork) {
  for (const char* blocks : {"blocks=1", "blocks=3"}) {
    RunSettings s = on_gpu("resnet20", {"width=4", "norm=batch", blocks});
    s.train.updates = 40;
    TestRun run(s);
    int64_t then = 0;
    const at::CallbackHandle handle =
        at::addGlobalCallback(at::RecordFunctionCallback(&count_numbers_read)
                                  .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
    run.trainer->set_stop_request([&] {
      if (run.trainer->updates_done() == 10) then = numbers_read;
      return run.trainer->updates_done() == 30;
    });
    run.run();
    at::removeCallback(handle);
    EXPECT_LE(numbers_read - then, 20 + 2) << blocks;  // the checkpoint of the stop on top
  }
}

}  // namespace
}  // namespace basin::testing
