// What a Partner asks and what it makes of answers: right ones, wrong ones, and none.
#include "hessian/outside/partner.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

#include "core/clock.h"
#include "tests/hessian/outside/scripted_partner.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::said_by;
using testing::Script;
using testing::ScriptedPartner;
using Say = std::function<void(const std::string&)>;

struct Network {
  testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 13);
  Objective objective{testing::tiny_mlp(), LossKind::cross_entropy, batch.images, batch.labels, 5};
};

at::Tensor sine(int64_t n) { return at::arange(n, at::kDouble).sin(); }

TEST(Partner, AnswersAreThoseOfTheNetworkBitForBit) {
  Network here, there;
  ScriptedPartner other(there.objective);
  const auto partner = other.connect();
  const at::Tensor v = sine(here.objective.parameters().size()), index = at::tensor({3, 0, 7}, at::kLong);
  const std::unique_ptr<Problem> batch = here.objective.part(index);
  for (const double step : {0.0, 0.25}) {
    const at::Tensor w = here.objective.parameters().gather() + step * v;
    here.objective.parameters().scatter(w);
    partner->parameters().scatter(w);
    double ours = 0, theirs = 0;
    EXPECT_EQ(partner->loss({}), here.objective.loss());
    EXPECT_TRUE(at::equal(partner->gradient({}, &theirs), here.objective.gradient(&ours)));
    EXPECT_EQ(theirs, ours);
    EXPECT_TRUE(at::equal(partner->product(v, {}), here.objective.curvature(Curvature::hessian)->apply(v)));
    EXPECT_TRUE(at::equal(partner->gradient(index, &theirs), batch->gradient(&ours)));
    EXPECT_EQ(theirs, ours);
    EXPECT_TRUE(at::equal(partner->product(v, index), batch->curvature(Curvature::hessian)->apply(v)));
    EXPECT_NEAR(partner->losses(index).mean().item<double>(), batch->loss(), 1e-15);
  }
  EXPECT_EQ(partner->questions(), 12);
}

TEST(Partner, HasNamesLayersKindsAndShapes) {
  Network there;
  ScriptedPartner other(there.objective);
  const auto partner = other.connect();
  const auto& theirs = there.objective.parameters().parameters();
  const auto& ours = partner->parameters().parameters();
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].name, theirs[i].name);
    EXPECT_EQ(ours[i].layer, theirs[i].layer);
    EXPECT_EQ(ours[i].kind, theirs[i].kind);
    EXPECT_EQ(ours[i].tensor.sizes(), theirs[i].tensor.sizes());
  }
  EXPECT_TRUE(at::equal(partner->parameters().gather(), there.objective.parameters().gather()));
}

// So that the other side may keep a graph; the problem's own weights are always 0.
TEST(Partner, WeightsKeepTheirNumberUntilTheyMove) {
  std::vector<int64_t> numbers;
  Script script;
  script.twist = [&](const json& question, json&, SharedVectors&, const Say&) {
    numbers.push_back(question["weights"]);
  };
  Network there;
  ScriptedPartner other(there.objective, script);
  const auto partner = other.connect();
  const auto ask = [&] { partner->loss({}); };
  ask();
  ask();
  {
    const ScopedParameters back(partner->parameters());
    partner->parameters().scatter(back.saved() + 1);
    ask();
    ask();
    partner->parameters().parameters().front().tensor.add_(1);  // one tensor alone
    ask();
  }
  ask();
  EXPECT_THAT(numbers, ::testing::ElementsAre(0, 0, 1, 1, 2, 0));
}

TEST(Partner, WhatItLeavesOutIsUnanswered) {
  Network there;
  ScriptedPartner other(there.objective, {.leaves_out = {"batch_gradient"}});
  const auto partner = other.connect();
  EXPECT_FALSE(partner->answers(Answer::batch_gradient));
  EXPECT_TRUE(partner->answers(Answer::gradient));
  EXPECT_EQ(said_by([&] { partner->gradient(at::zeros({1}, at::kLong), nullptr); }),
            "needs the gradient of a weighted batch (batch_gradient), which this problem doesn't answer");
  EXPECT_EQ(partner->questions(), 0);
}

/// What comes of one question, by default for the gradient; empty where it is answered.
std::string said_of(Script script, const std::function<void(Partner&)>& ask = {}) {
  Network there;
  ScriptedPartner other(there.objective, std::move(script));
  const auto partner = other.connect(/*silence=*/0.4);
  return said_by([&] { ask ? ask(*partner) : static_cast<void>(partner->gradient({}, nullptr)); });
}

Script with_reply(const std::function<void(json&)>& change) {
  Script script;
  script.twist = [change](const json&, json& reply, SharedVectors&, const Say&) { change(reply); };
  return script;
}

TEST(PartnerRefuses, AnAnswerOfTheWrongSize) {
  const Script script = with_reply([](json& reply) { reply["size"] = 99; });
  EXPECT_EQ(said_of(script), "the gradient (gradient): 99 numbers; the parameters have 143");
  EXPECT_EQ(said_of(script, [](Partner& p) { p.losses(at::arange(4, at::kLong)); }),
            "losses by example (losses): 99 numbers for 4 examples");
}

TEST(PartnerRefuses, NotANumberAtTheProblemsOwnWeights) {
  const Script no_loss = with_reply([](json& reply) { reply["loss"] = nullptr; });
  EXPECT_EQ(said_of(no_loss), "the gradient (gradient): not finite at the problem's own weights");
  Script one;
  one.twist = [](const json&, json&, SharedVectors& vectors, const Say&) {
    vectors.result[77] = std::numeric_limits<double>::infinity();
  };
  EXPECT_EQ(said_of(one), "the gradient (gradient): not finite at the problem's own weights");
  EXPECT_EQ(said_of(one, [](Partner& p) { p.product(sine(143), {}); }),
            "Hessian-vector products (product): not finite at the problem's own weights");
  // Elsewhere it is a number like any other.
  EXPECT_EQ(said_of(no_loss,
                    [](Partner& p) {
                      p.parameters().parameters().front().tensor.add_(1);
                      double loss = 0;
                      p.gradient({}, &loss);
                      EXPECT_TRUE(std::isnan(loss));
                    }),
            "");
}

TEST(PartnerRefuses, AnAnswerToAnotherQuestion) {
  EXPECT_THAT(said_of(with_reply([](json& reply) { reply["answer"] = 7; })),
              HasSubstr("question 1 was answered by {\"answer\":7"));
  EXPECT_THAT(said_of(with_reply([](json& reply) { reply.erase("answer"); })),
              HasSubstr("question 1 was answered by {"));
  EXPECT_THAT(said_of(with_reply([](json& reply) { reply["size"] = "all"; })),
              HasSubstr("question 1 was answered by {"));
  Script garbled;
  garbled.garble = [](const std::string& line) {
    return line.front() == '{' && line.find("hello") != std::string::npos ? line : "hm";
  };
  EXPECT_EQ(said_of(garbled), "the process that answers said no JSON: hm");
}

TEST(PartnerRefuses, OneThatEnds) {
  EXPECT_EQ(said_of({.dies_at = 1}), "the process that answers ended");
  EXPECT_EQ(said_of({.dies_at = 3},
                    [](Partner& p) {
                      for (int i = 0; i < 3; ++i) p.loss({});
                    }),
            "the process that answers ended");
}

TEST(PartnerRefuses, OneThatHangs) {
  const Clock::time_point start = Clock::now();
  EXPECT_EQ(said_of({.hangs_at = 1}), "the process that answers has given no sign of life for 0.4 s");
  EXPECT_GE(seconds_since(start), 0.4);
}

// Three times as long as a silence may be.
TEST(Partner, ASlowAnswerIsNoSilence) {
  Script slow;
  slow.twist = [](const json&, json&, SharedVectors&, const Say& say) {
    for (int i = 0; i < 12; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      say("{\"alive\":true}");
    }
  };
  EXPECT_EQ(said_of(slow), "");
}

TEST(PartnerRefuses, MemoryThatIsTooSmallOrCouldShrink) {
  const auto said = [](int64_t bytes, bool sealed) {
    Network there;
    ScriptedPartner other(there.objective);
    const int memory = testing::shared_memory(bytes, sealed);
    const std::string message = said_by([&] { other.connect_with(memory); });
    ::close(memory);
    return message;
  };
  EXPECT_EQ(said(4096, false), "the shared memory is no memfd that is sealed against shrinking");
  EXPECT_EQ(said(1024, true), "the shared memory has 1024 bytes; 3840 are needed");
}

TEST(PartnerRefuses, WeightsThatAreNotFinite) {
  Network there;
  there.objective.parameters().parameters().front().tensor.detach()[0][0] =
      std::numeric_limits<double>::quiet_NaN();
  ScriptedPartner other(there.objective);
  EXPECT_EQ(said_by([&] { other.connect(); }), "a weight of the problem is not finite");
}

}  // namespace
}  // namespace basin
