#include <gtest/gtest.h>

#include "core/error.h"
#include "models/registry.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

int64_t count(const std::string& name, const std::vector<std::string>& settings = {},
              const InputShape& shape = {}) {
  return testing::make_test_model(name, settings, shape, 1, at::kFloat)->parameter_count();
}

// Counts by hand: weights + biases of each layer.
TEST(ParameterCount, Mlp) {
  EXPECT_EQ(count("mlp"), 3072 * 128 + 128 + 128 * 64 + 64 + 64 * 10 + 10);
  EXPECT_EQ(count("mlp", {"hidden=[]"}), 3072 * 10 + 10);
  EXPECT_EQ(testing::tiny_mlp()->parameter_count(), 9 * 8 + 8 + 8 * 5 + 5 + 5 * 3 + 3);
}

TEST(ParameterCount, SmallCnn) {
  const int64_t convolutions = 3 * 16 * 9 + 16 + 16 * 32 * 9 + 32 + 32 * 64 * 9 + 64;
  EXPECT_EQ(count("small_cnn"), convolutions + 64 * 4 * 4 * 10 + 10);
  EXPECT_EQ(count("small_cnn", {"downsample=stride"}), convolutions + 64 * 4 * 4 * 10 + 10);
  // 28 -> 14 -> 7 -> 3 by pooling, 4 by strides.
  const InputShape grey{.channels = 1, .height = 28, .width = 28, .classes = 10};
  EXPECT_EQ(count("small_cnn", {}, grey), convolutions - 2 * 16 * 9 + 64 * 3 * 3 * 10 + 10);
  EXPECT_EQ(count("small_cnn", {"downsample=stride"}, grey),
            convolutions - 2 * 16 * 9 + 64 * 4 * 4 * 10 + 10);
  EXPECT_EQ(count("small_cnn", {"norm=batch"}) - count("small_cnn"), 2 * (16 + 32 + 64));
}

// 1.76 million in the literature; the exact figure from the authors' code (biases everywhere, `same` pooling
// 32 -> 16 -> 8).
TEST(ParameterCount, KeskarC1) {
  const int64_t convolutions = 3 * 64 * 25 + 64 + 64 * 64 * 25 + 64;
  const int64_t linears = 4096 * 384 + 384 + 384 * 192 + 192 + 192 * 10 + 10;
  const int64_t norms = 2 * (64 + 64 + 384 + 192);
  EXPECT_EQ(convolutions + linears + norms, 1757834);
  EXPECT_EQ(count("keskar_c1"), 1757834);
  EXPECT_EQ(count("keskar_c1", {"norm=none"}), 1757834 - norms);
}

// 269,722 with batch norm: He et al.'s 0.27 million.
TEST(ParameterCount, ResNet20) {
  EXPECT_EQ(count("resnet20"), 269722);
  EXPECT_EQ(count("resnet20", {"norm=group"}), 269722);
  const int64_t channels =
      7 * 16 + 6 * 32 + 6 * 64;  // of the 19 convolutions: a weight and a bias each, or a bias alone
  EXPECT_EQ(count("resnet20", {"norm=none"}), 269722 - channels);
}

// nanoGPT says 0.80 million for its smallest setting, of which it leaves out the positions.
TEST(ParameterCount, Gpt) {
  const InputShape text{.classes = 65, .sizes = {64}, .tokens = 65, .labels = 64};
  const int64_t width = 128, blocks = 4 * (2 * width + 12 * width * width), positions = 64 * width;
  EXPECT_EQ(count("gpt", {}, text), 65 * width + positions + blocks + width);
  EXPECT_EQ(count("gpt", {}, text) - positions, 795'904);
  EXPECT_EQ(count("gpt", {"tied=false"}, text) - count("gpt", {}, text), 65 * width);
  EXPECT_EQ(count("gpt", {"bias=true"}, text) - count("gpt", {}, text), 4 * (2 + 9) * width + width);
}

// 6.57 million, by hand and by `sum(p.numel() for p in ...)` over the network of cifar10-fast's dawn.py.
TEST(ParameterCount, DavidNet) {
  const int64_t convolutions =
      9 * (3 * 64 + 64 * 128 + 2 * 128 * 128 + 128 * 256 + 256 * 512 + 2 * 512 * 512);
  const int64_t norms = 2 * (64 + 3 * 128 + 256 + 3 * 512);
  EXPECT_EQ(convolutions + norms + 512 * 10, 6573120);
  EXPECT_EQ(count("davidnet"), 6573120);
  EXPECT_EQ(count("davidnet", {"norm=none"}), 6573120 - norms / 2);
}

// By hand and by the same sum over what requires a gradient in cifar10-airbench's legacy/airbench94.py.
TEST(ParameterCount, Airbench) {
  const int64_t first = 9 * (24 * 64 + 64 * 64), second = 9 * (64 * 256 + 256 * 256),
                third = 9 * 2 * 256 * 256;
  const int64_t biases = 24 + 2 * (64 + 256 + 256);
  EXPECT_EQ(first + second + third + biases + 256 * 10, 1971352);
  EXPECT_EQ(count("airbench"), 1971352);
  EXPECT_EQ(count("airbench", {"norm=none"}), 1971352);  // as many biases, of the convolutions
}

TEST(ParameterCount, NoisyQuadratic) {
  EXPECT_EQ(count("noisy_quadratic"), 10);
  EXPECT_EQ(count("noisy_quadratic", {}, {.channels = 256, .height = 1, .width = 1, .classes = 256}), 256);
}

void expect_config_error(const std::string& name, const std::vector<std::string>& settings,
                         const std::string& part, const InputShape& shape = {}) {
  try {
    count(name, settings, shape);
    ADD_FAILURE() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(BadModelOptions, AreNamed) {
  expect_config_error(
      "nonsense", {},
      fmt::format("unknown model \"nonsense\"; known: {}", fmt::join(names_of(model_registry()), ", ")));
  expect_config_error("small_cnn", {"widths=[4, 4, 4, 4, 4, 4]"}, "widths has 6 entries, too many");
  expect_config_error("small_cnn", {"kernel=4"}, "kernel = 4");
  expect_config_error("small_cnn", {"norm=group", "groups=5"}, "groups = 5");
  expect_config_error("mlp", {"activation=sine"}, "activation");
  expect_config_error("keskar_c1", {"dropout=1.0"}, "dropout");
  expect_config_error("mlp", {"hidden=[8, 0]"}, "hidden");
  expect_config_error("davidnet", {}, "images of 7 x 9 are too small for davidnet, which halves them 3 times",
                      {.channels = 3, .height = 7, .width = 9, .classes = 10});
  expect_config_error("airbench", {"widths=[4, 4, 4, 4, 4]"}, "widths has 5 entries, too many");
  expect_config_error("airbench", {"whiten_eps=0"}, "whiten_eps");
  expect_config_error("noisy_quadratic", {"precondition=1.5"}, "precondition");
  expect_config_error("noisy_quadratic", {}, "images of 1 x 3 x 3 are too small for 10 classes",
                      {.channels = 1, .height = 3, .width = 3, .classes = 10});
}

}  // namespace
}  // namespace basin
