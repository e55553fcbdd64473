// A network from a file against its twin among Basin's own, and what is refused.
#include "models/script/torchscript.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <set>

#include "core/hash.h"
#include "core/seed.h"
#include "models/loss.h"
#include "models/registry.h"
#include "models/running_statistics.h"
#include "tests/models/dropout_at_its_place.h"
#include "tests/support/message_of.h"
#include "tests/support/script_nets.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using testing::script_model;
using testing::tiny_batch;
using testing::tiny_image_shape;
using testing::write_script;

constexpr double kScriptRounding = 1e-12;  // float64, sums in another order
constexpr const char* kLinear = "return torch.linear(torch.flatten(x, 1), self.w, self.b)";

class TorchScriptTest : public ::testing::Test {
 protected:
  std::string written(const std::string& body) {
    write_script(path_, body);
    return path_;
  }
  std::string refusal(const std::string& body, const std::vector<std::string>& settings = {}) {
    written(body);
    return message_of([&] { script_model(path_, settings); });
  }

  testing::TemporaryFolder folder_;
  std::string path_ = folder_ / "net.pt";
};

struct Twins {
  std::shared_ptr<Model> script, own;
};

Twins twins_of(const std::string& path, double momentum) {
  testing::write_small_cnn_script(path, momentum);
  Twins twins{script_model(path), testing::tiny_model("small_cnn", {"norm=batch"}, 5)};
  testing::copy_tensors(*twins.own, *twins.script);
  for (const auto& model : {twins.script, twins.own}) model->eval();
  return twins;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST_F(TorchScriptTest, ParametersAndBuffersAreItsTwins) {
  const Twins twins = twins_of(path_, 0.1);
  const auto &script = twins.script->parameter_table(), &own = twins.own->parameter_table();
  ASSERT_EQ(script.size(), own.size());
  for (const ParameterInfo& p : own) {
    const auto found =
        std::find_if(script.begin(), script.end(), [&](const auto& q) { return q.name == p.name; });
    ASSERT_NE(found, script.end()) << p.name;
    EXPECT_EQ(found->layer, p.layer);
    EXPECT_EQ(found->kind, p.kind) << p.name;
    EXPECT_EQ(found->tensor.sizes(), p.tensor.sizes());
  }
  EXPECT_EQ(twins.script->buffer_table().size(), twins.own->buffer_table().size());  // without the counters
}

TEST_F(TorchScriptTest, LogitsAndDerivativesAreItsTwinsInEveryMode) {
  const Twins twins = twins_of(path_, 0.1);
  const auto batch = tiny_batch(tiny_image_shape(), 8);
  std::vector<at::Tensor> logits, gradients, products;
  for (const NormMode mode : {NormMode::running, NormMode::folded, NormMode::ghost_batch}) {
    for (const auto& model : {twins.script, twins.own}) {
      model->set_norm_mode(mode, 3);
      std::vector<at::Tensor> leaves;
      for (const ParameterInfo& p : model->parameter_table()) leaves.push_back(p.tensor);
      logits.push_back(model->forward(batch.images));
      const at::Tensor loss = example_losses(LossKind::cross_entropy, logits.back(), batch.labels).mean();
      const auto first = torch::autograd::grad({loss}, leaves, {}, true, true);
      at::Tensor norm = at::zeros({}, at::kDouble);
      for (const at::Tensor& g : first) norm = norm + g.square().sum();
      gradients.push_back(norm.detach());
      at::Tensor second = at::zeros({}, at::kDouble);
      for (const at::Tensor& g : torch::autograd::grad({norm}, leaves)) second += g.square().sum();
      products.push_back(second);
    }
    EXPECT_LT(largest_difference(logits.end()[-1], logits.end()[-2]), kScriptRounding);
    EXPECT_LT(largest_difference(gradients.end()[-1], gradients.end()[-2]), kScriptRounding);
    EXPECT_LT(largest_difference(products.end()[-1], products.end()[-2]), 1e-10);  // numbers of order 10
    EXPECT_GT(products.back().item<double>(), 1e-3);
  }
}

TEST_F(TorchScriptTest, RunningStatisticsAreThoseOfItsTwinWhateverTheMomentum) {
  const auto batch = tiny_batch(tiny_image_shape(), 11);
  for (const double momentum : {0.1, 0.37, 1.0}) {
    const Twins twins = twins_of(path_, momentum);
    for (const auto& model : {twins.script, twins.own}) {
      const auto forward = [&](int64_t first, int64_t count) {
        model->forward(batch.images.narrow(0, first, count));
      };
      estimate_running_statistics(*model, 11, forward, 6, 3);
    }
    const NamedTensors& own = twins.own->buffer_table();
    for (const auto& [name, buffer] : twins.script->buffer_table()) {
      const auto found =
          std::find_if(own.begin(), own.end(), [&](const auto& one) { return one.first == name; });
      ASSERT_NE(found, own.end());
      // The momentum is known to some roundings, and the statistics are divided by it.
      EXPECT_LT(largest_difference(buffer, found->second), 1e-11) << name << " at momentum " << momentum;
    }
    EXPECT_LT(largest_difference(twins.script->forward(batch.images), twins.own->forward(batch.images)),
              1e-10);
  }
}

TEST_F(TorchScriptTest, BiasesThatABatchNormCancelsAreItsTwins) {
  const Twins twins = twins_of(path_, 0.1);
  twins.own->forward(tiny_batch(tiny_image_shape(), 8).images);  // which shows them there
  const auto cancelled = [](const Model& model) {
    std::set<std::string> names;
    for (const ParameterInfo& p : model.parameter_table())
      if (model.is_cancelled(p.tensor)) names.insert(p.name);
    return names;
  };
  EXPECT_EQ(cancelled(*twins.script), cancelled(*twins.own));
  EXPECT_THAT(cancelled(*twins.script), ::testing::ElementsAre("conv1.bias", "conv2.bias"));
}

TEST_F(TorchScriptTest, ABiasBeforeALayerNormIsNotCancelledByABatchNormElsewhere) {
  const auto drawn = [](at::IntArrayRef sizes) {
    return at::randn(sizes, make_generator(4)).requires_grad_();
  };
  write_script(path_,
               "h = torch.linear(torch.flatten(self.norm.forward(x), 1), self.w, self.b)\n"
               "  return torch.layer_norm(h, [3])",
               {{"w", drawn({3, 128})}, {"b", drawn({3})}}, {{"norm", testing::batch_norm_script(2, 0.1)}});
  const auto model = script_model(path_);
  for (const ParameterInfo& p : model->parameter_table())
    EXPECT_FALSE(model->is_cancelled(p.tensor)) << p.name;
}

TEST_F(TorchScriptTest, ABatchLeavesTheRunningStatisticsAlone) {
  const Twins twins = twins_of(path_, 0.1);
  const auto batch = tiny_batch(tiny_image_shape(), 6);
  const at::Tensor before = twins.script->forward(batch.images);
  twins.script->set_norm_mode(NormMode::ghost_batch, 3);
  twins.script->forward(batch.images);
  twins.script->set_norm_mode(NormMode::running);
  EXPECT_TRUE(at::equal(twins.script->forward(batch.images), before));
}

TEST_F(TorchScriptTest, StartsFromTheFileOrIsDrawnBySeed) {
  testing::write_small_cnn_script(path_);
  const auto weight = [&](const std::string& start, uint64_t seed, const std::string& name) {
    const auto model = script_model(path_, {"start=" + start}, seed);
    for (const ParameterInfo& p : model->parameter_table())
      if (p.name == name) return p.tensor.detach().clone();
    return at::Tensor();
  };
  EXPECT_TRUE(at::equal(weight("file", 1, "conv2.weight"), weight("file", 2, "conv2.weight")));
  const at::Tensor drawn = weight("drawn", 1, "conv2.weight");
  EXPECT_TRUE(at::equal(drawn, weight("drawn", 1, "conv2.weight")));
  EXPECT_FALSE(at::equal(drawn, weight("drawn", 2, "conv2.weight")));
  const double bound =
      1 / std::sqrt(27.0);  // 3 channels, 3 x 3: of 108 numbers one is beyond nine tenths of it
  EXPECT_LE(drawn.abs().max().item<double>(), bound + 1e-7);
  EXPECT_GT(drawn.abs().max().item<double>(), 0.9 * bound);
  EXPECT_TRUE(at::equal(weight("drawn", 1, "norm1.weight"), at::ones({3}, at::kDouble)));
  EXPECT_THAT(refusal(kLinear, {"start=drawn"}), HasSubstr("no rule for self.w of a Net"));
}

TEST_F(TorchScriptTest, TiedWeightsAreOneParameter) {
  const at::Tensor w = at::ones({3, 128}).requires_grad_();
  write_script(path_, "return torch.linear(torch.flatten(x, 1), self.first + self.second)",
               {{"first", w}, {"second", w}});
  const auto model = script_model(path_);
  ASSERT_EQ(model->parameter_table().size(), 1U);
  const at::Tensor x = tiny_batch(tiny_image_shape(), 2).images;
  at::NoGradGuard no_grad;
  at::Tensor(model->parameter_table()[0].tensor).fill_(2);
  EXPECT_LT(largest_difference(model->forward(x)[0][0], 4 * x[0].sum()), 1e-10);
}

TEST_F(TorchScriptTest, FrozenParametersAreBuffersAndKindsCanBeGiven) {
  write_script(path_, "return torch.linear(torch.flatten(x, 1), self.w) * self.scale * self.fixed",
               {{"w", at::ones({3, 128}).requires_grad_()},
                {"scale", at::ones({3}).requires_grad_()},
                {"fixed", at::ones({3})}});
  const auto model = script_model(path_);
  ASSERT_EQ(model->parameter_table().size(), 2U);
  EXPECT_EQ(model->parameter_table()[0].name, "self.w");
  EXPECT_EQ(model->parameter_table()[0].kind, ParameterKind::weight);
  EXPECT_EQ(model->parameter_table()[1].kind, ParameterKind::norm_weight);
  ASSERT_EQ(model->buffer_table().size(), 1U);
  EXPECT_EQ(model->buffer_table()[0].first, "self.fixed");
  const auto other = script_model(path_, {"kinds=[\"*.scale=bias\"]"});
  EXPECT_EQ(other->parameter_table()[1].kind, ParameterKind::bias);
  EXPECT_EQ(message_of([&] { script_model(path_, {"kinds=[\"nothing=bias\"]"}); }),
            "torchscript.kinds: \"nothing\" is the name of no parameter");
}

TEST_F(TorchScriptTest, DropoutRepeatsAtItsPlaceAlone) {
  written("return torch.linear(torch.dropout(torch.flatten(x, 1), 0.5, self.training), self.w, self.b)");
  const auto model = script_model(path_);
  EXPECT_TRUE(model->has_dropout());
  EXPECT_TRUE(find_entry(model_registry(), "torchscript", "model")
                  .traits(*testing::test_options("torchscript", {"file=" + path_}))
                  .dropout);
  const auto batch = tiny_batch(tiny_image_shape(), 4);
  testing::expect_dropout_at_its_place(*model, batch.images);
}

TEST_F(TorchScriptTest, DropoutOfNothingIsNone) {
  const auto draws = [&](const std::string& p) {
    written("q = x[:, 0]\n  y = torch.scaled_dot_product_attention(q, q, q, dropout_p=" + p +
            ")\n  return torch.linear(torch.flatten(torch.cat([y, y], 1), 1), self.w, self.b)");
    return script_model(path_)->has_dropout();
  };
  EXPECT_FALSE(draws("0.0"));
  EXPECT_TRUE(draws("0.1 if self.training else 0.0"));
}

TEST_F(TorchScriptTest, NumbersOfAnyTypeAndIntegersNextToBatchNormsAreTaken) {
  torch::jit::Module norm = testing::batch_norm_script(2);
  torch::jit::Module net("__torch__.Net");
  net.register_module("norm", norm);
  net.register_parameter("w", at::ones({3, 128}, at::kDouble).requires_grad_(), false);
  net.register_buffer("order", at::arange(128, at::kLong));
  net.register_attribute("training", c10::BoolType::get(), true);
  net.define(
      "def forward(self, x: Tensor):\n  return torch.linear(torch.flatten(self.norm.forward(x), 1)[:, "
      "self.order], self.w)\n");
  net.to(at::kDouble);
  net.setattr("order", at::arange(128, at::kLong));
  net.save(path_);
  // The statistics, and the norm's counter, of which Module::to() makes a number.
  EXPECT_EQ(script_model(path_)->buffer_table().size(), 3U);
  torch::jit::Module twice("__torch__.Net");
  twice.register_module("norm", norm);
  twice.register_module("again", norm);
  twice.register_parameter("w", at::ones({3, 128}).requires_grad_(), false);
  twice.register_attribute("training", c10::BoolType::get(), true);
  twice.define(
      "def forward(self, x: Tensor):\n  return "
      "torch.linear(torch.flatten(self.again.forward(self.norm.forward(x)), 1), self.w)\n");
  twice.to(at::kFloat);
  twice.save(path_);
  EXPECT_THAT(message_of([&] { script_model(path_); }), HasSubstr("a batch norm stands in two places"));
}

TEST_F(TorchScriptTest, IsNamedByItsContents) {
  written(kLinear);
  const auto sha = [&](const std::string& path) {
    const auto options = testing::test_options("torchscript", {"file=" + path});
    return std::get<std::string>(options->view().at("sha256").get());
  };
  EXPECT_EQ(sha(path_), sha256_of_file(path_));
  const std::string before = sha(path_);
  write_script(folder_ / "copy.pt", kLinear);
  written("return 2 * torch.linear(torch.flatten(x, 1), self.w, self.b)");
  EXPECT_NE(sha(path_), before);
  EXPECT_THAT(message_of([&] { script_model(path_, {"sha256=" + before}); }),
              HasSubstr("net.pt\": another network: its SHA-256 is "));
  const auto first = testing::test_options("torchscript", {"sha256=" + before, "file=" + path_});
  EXPECT_EQ(std::get<std::string>(first->view().at("sha256").get()), before);
}

TEST_F(TorchScriptTest, RefusesInOneLineWhatItCannotMeasure) {
  EXPECT_EQ(message_of([&] { script_model(folder_ / "none.pt"); }),
            fmt::format("torchscript.file = \"{}\": no such file", folder_ / "none.pt"));
  std::ofstream(folder_ / "words.pt") << "not a network";
  EXPECT_THAT(message_of([&] { script_model(folder_ / "words.pt"); }),
              HasSubstr("not a TorchScript file that this torch can load"));
  EXPECT_THAT(refusal("return torch.linear(x.view(4, 128), self.w, self.b)"),
              HasSubstr("fails on 3 inputs [2, 8, 8] of Float: shape '[4, 128]' is invalid"));
  EXPECT_THAT(refusal("return torch.flatten(x, 1)"),
              HasSubstr("returns [4, 128] for 4 examples; [4, 3] is expected"));
  EXPECT_THAT(refusal("return (x, x)"), HasSubstr("returns a Tuple, not one tensor of logits"));
  EXPECT_THAT(refusal("return torch.linear(torch.flatten(x, 1) - x.mean(), self.w, self.b)"),
              HasSubstr("depends on the others in the batch"));
  EXPECT_THAT(refusal("return torch.linear(torch.flatten(x, 1), self.w[:, :7], self.b)"),
              HasSubstr("mat1 and mat2 shapes cannot be multiplied"));
  // The kernel that attention takes on its own, without second derivatives.
  EXPECT_THAT(refusal("return torch.linear(torch.flatten(torch._scaled_dot_product_flash_attention_for_cpu("
                      "x * self.b.sum(), x, x)[0], 1), self.w, self.b)"),
              HasSubstr("no second derivatives: "));
  write_script(path_, "return torch.flatten(x, 1)[:, :3]", {});
  EXPECT_THAT(message_of([&] { script_model(path_); }), HasSubstr("no parameter that is trained"));
}

}  // namespace
}  // namespace basin
