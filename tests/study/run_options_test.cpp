#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/hash.h"
#include "study/run_options.h"
#include "trainers/hooks/perturbed_gradient.h"

namespace basin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunOptions from(const std::string& text, const std::vector<std::string>& sets = {}) {
  return run_options_from(parse_toml(text, "study.toml"), sets);
}

TEST(RunOptionsTest, DefaultThenFileThenSet) {
  EXPECT_EQ(from("").train.batch_size, 256);
  EXPECT_EQ(from("batch_size = 512\n").train.batch_size, 512);
  EXPECT_EQ(from("batch_size = 512\n", {"batch_size=1024"}).train.batch_size, 1024);
}

TEST(RunOptionsTest, ResolvedReadsBackAsItself) {
  const RunOptions options =
      from("optimizer = \"lamb\"\nbatch_size = 4096\n[lamb]\nbeta1 = 0.8\n[small_cnn]\nwidths = [4, 8]\n");
  const std::string text = options.resolved();
  EXPECT_EQ(from(text).resolved(), text);
  EXPECT_EQ(from(text).run_id(), options.run_id());
  EXPECT_THAT(text, HasSubstr("beta1 = 0.8"));
  EXPECT_THAT(text, Not(HasSubstr("[lars]")));
  EXPECT_THAT(text, Not(HasSubstr("[runtime]")));
  EXPECT_THAT(text, Not(HasSubstr("[probes]")));
}

TEST(RunOptionsTest, RunIdHangsOnWhatDefinesTheRunAlone) {
  const std::string id = from("").run_id();
  EXPECT_EQ(id.size(), 12u);
  for (const char* same : {"runtime.threads=2", "probes.subset=7", "lamb.beta1=0.5", "checkpoint_seconds=5",
                           "data.path=/elsewhere", "runtime.cuda_graph=false"}) {
    EXPECT_EQ(from("", {same}).run_id(), id) << same;
  }
  for (const char* other : {"batch_size=8", "sgd.momentum=0.5", "seed=2", "data.validation=0.1",
                            "micro_batch=8", "autocast=bfloat16"}) {
    EXPECT_NE(from("", {other}).run_id(), id) << other;
  }
}

TEST(RunOptionsTest, ConfigIdForgetsTheSeed) {
  EXPECT_EQ(from("", {"seed=2"}).config_id(), from("").config_id());
  EXPECT_NE(from("", {"batch_size=8"}).config_id(), from("").config_id());
}

TEST(RunOptionsTest, CopiesAreIndependent) {
  const RunOptions base = from("");
  RunOptions copy = base;
  copy.table().set("sgd.momentum", 0.5, "test");
  EXPECT_NE(copy.run_id(), base.run_id());
}

TEST(RunOptionsTest, LeavesTheSweepToTheSweep) {
  EXPECT_NO_THROW(
      from("[sweep]\nbatch_size = [1, 2]\n[[sweep.set]]\nwhen = {batch_size = 2}\nset = {seed = 3}\n"));
}

TEST(RunOptionsTest, NamesLineOfUnknownKeys) {
  for (const char* text : {"batch_size = 8\nnonsense = 1\n", "seed = 1\n[[other]]\na = 1\n"}) {
    try {
      from(text);
      FAIL() << text;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("study.toml:2")) << text;
    }
  }
}

TEST(RunOptionsTest, ChecksRelations) {
  EXPECT_NO_THROW(check(from("")));
  EXPECT_NO_THROW(check(from("model = \"mlp\"\n[mlp]\nnorm = \"batch\"\n")));
  const std::vector<std::string> cut = {"micro_batch=100", "ghost_batch=64", "model=mlp", "mlp.norm=batch"};
  EXPECT_THROW(check(from("", cut)), ConfigError);
}

TEST(RunOptionsTest, ThePerturbationIsPartOfTheRun) {
  const RunOptions options = from("[perturbation]\nkind = \"asam\"\nrho = 0.5\n");
  EXPECT_EQ(options.train.hook<PerturbationOptions>().kind, "asam");
  EXPECT_NE(options.run_id(), from("").run_id());
  EXPECT_EQ(from(options.resolved()).run_id(), options.run_id());
}

TEST(RunOptionsTest, RefusesWhatExcludesItself) {
  for (const std::vector<std::string>& sets : std::vector<std::vector<std::string>>{
           {"label_smoothing=0.1", "loss=mse"},
           {"protocol=B", "batch_milestones=[0.5]"},
           {"probes.at=[\"average\"]"},
           {"data.cutout=8"},
           {"lookahead_every=5", "optimizer=lbfgs"},
           {"schedule_unit=epochs", "warmup=1", "batch_milestones=[0.5]"},
           {"perturbation.kind=sam", "perturbation.examples=100", "model=mlp", "mlp.norm=batch"}}) {
    EXPECT_THROW(check(from("", sets)), ConfigError) << sets.front();
  }
  EXPECT_NO_THROW(check(from("", {"probes.at=[\"average\"]", "weight_average=0.99"})));
}

TEST(RunOptions, ACadenceOfProbesNeedsCheckpoints) {
  RunOptions options;
  options.probes.at = {"every"};
  EXPECT_THROW(check(options), ConfigError);
  options.train.checkpoint_every = 10;
  EXPECT_NO_THROW(check(options));
}

}  // namespace
}  // namespace basin
