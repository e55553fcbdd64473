// Networks that start from images (Model::prepare).
#include <gtest/gtest.h>

#include "data/network_inputs.h"
#include "models/registry.h"
#include "tests/trainers/test_run.h"

namespace basin::testing {
namespace {

RunSettings airbench_settings() {
  RunSettings s = small_settings();
  s.model = "airbench";
  s.model_settings = {"widths=[4, 4]", "groups=1"};
  s.data.train_examples = 60;
  s.data.test_examples = 40;
  s.train.updates = 2;
  s.train.batch_size = s.train.micro_batch = s.train.ghost_batch = 20;  // the test images take two passes
  return s;
}

at::Tensor whitening(const NamedTensors& buffers) {
  for (const auto& [name, tensor] : buffers)
    if (name == "whiten.weight") return tensor.clone();
  return {};
}

TEST(ModelStart, IsOfTheFirstTrainingImagesAndStandsInEveryCheckpoint) {
  RunSettings s = airbench_settings();
  s.data.augmentation = "crop_flip";  // prepare() sees images as they are
  TestRun run(s), fresh(s);
  const at::Tensor images =
      network_inputs(run.data, run.data.train, at::arange(60, at::kLong), at::kDouble, at::kCPU);
  fresh.model->prepare(images);
  const at::Tensor expected = whitening(fresh.model->buffer_table());
  ASSERT_FALSE(at::equal(expected, whitening(run.model->buffer_table())));
  run.run();
  for (const char* label : {"start", "end"})
    EXPECT_TRUE(at::equal(whitening(run.listener.checkpoints.at(label).buffers), expected)) << label;
}

// A probe builds the network anew and restores it; nothing prepares it.
TEST(ModelStart, ComesBackWithTheCheckpoint) {
  TestRun run(airbench_settings()), other(airbench_settings());
  run.run();
  restore_model(*other.model, run.listener.checkpoints.at("end"));
  const at::NoGradGuard no_grad;
  const at::Tensor images =
      network_inputs(run.data, run.data.test, at::arange(9, at::kLong), at::kDouble, at::kCPU);
  for (const auto& model : {run.model, other.model}) {
    model->eval();
    model->set_norm_mode(NormMode::running);
  }
  EXPECT_TRUE(at::equal(run.model->forward(images), other.model->forward(images)));
}

}  // namespace
}  // namespace basin::testing
