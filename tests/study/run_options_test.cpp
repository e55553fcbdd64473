#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/hash.h"
#include "models/registry.h"
#include "optim/registry.h"
#include "probes/registry.h"
#include "study/probe_plan_text.h"
#include "study/run_options.h"
#include "study/study.h"
#include "tests/support/environment.h"
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

// As the program named them before roles stood with the options (at f1eed98): files in the world have these names.
TEST(RunOptionsTest, NamesAreThoseThatTheyWere) {
  const std::string folder = testing::source_folder() + "/configs/";
  std::vector<std::string> runs, settings;
  for (const Cell& cell : expand(read_study(folder + "tiny.toml", {}))) {
    runs.push_back(cell.run_id);
    settings.push_back(cell.options.config_id());
  }
  EXPECT_THAT(
      runs, ::testing::UnorderedElementsAre("13e46294ec03", "7f6d7ccd6b58", "2d8fbc7a3d12", "ffc9bf9517fc",
                                            "b706373a9a41", "55b1a36157f5", "9b87c42edf25", "8a712db059ea"));
  EXPECT_THAT(settings, ::testing::UnorderedElementsAre("fc40aa36186f", "d3432919c09e", "b17acfd3595e",
                                                        "e6184c0f218b", "cddc59ed3540", "3ae9cf5daaef",
                                                        "8405f43fb4ae", "cfd8d07d27e5"));
  const RunOptions other = from(
      "model = \"mlp\"\noptimizer = \"lars\"\nseed = 3\nbatch_size = 512\nepochs = 2\nlearning_rate = 0.25\n"
      "micro_batch = 64\nweight_average = 0.99\ncheckpoint_seconds = 11.0\n"
      "[data]\nset = \"synthetic\"\nvalidation = 0.125\ntrain_examples = 64\n[lars]\npreset = "
      "\"apex\"\nmomentum = 0.8\n"
      "[mlp]\nhidden = [4]\n[perturbation]\nkind = \"asam\"\nrho = 0.5\n[runtime]\nthreads = 1\n");
  EXPECT_EQ(other.run_id(), "8592b911231c");
  EXPECT_EQ(other.config_id(), "b8163cf6d43c");
}

// What probes/done has the hash of.
TEST(RunOptionsTest, ThePlanOfProbesIsSpeltWithDefaultsOfExecution) {
  const RunOptions options = from(
      "[probes]\nrun = [\"noise_scale\"]\nsubset = 64\nmicro_batch = 64\ngraph_memory = 7\nfold_norm = "
      "false\n");
  EXPECT_EQ(
      probe_plan_text(options),
      "\n[probes]\nrun = [\"noise_scale\"]\ntwin = []\nsubset = 64\nmicro_batch = 250\ndtype = \"float32\"\n"
      "graph_memory = 1024\nfold_norm = true\nat = [\"end\", \"loss\"]\n"
      "\n[noise_scale]\nestimator = \"paired\"\ngroup_size = 10\n");
  // With the probe's version, the first line of probes/done of a tiny run of protocol A.
  EXPECT_EQ(sha256_hex(probe_plan_text(options) + "noise_scale 3\n"),
            "f6dcdbc5466bd91309e16dbf32442354d21aa970301dbc5381160639149bd6c3");
}

template <class O>
concept HasTable = requires(O&& options) {
  std::forward<O>(options).table();
};
static_assert(HasTable<RunOptions&> && HasTable<const RunOptions&>);
static_assert(!HasTable<RunOptions> && !HasTable<const RunOptions>,
              "a table of a temporary would outlive it");
static_assert(std::is_same_v<decltype(std::declval<const RunOptions&>().table()), OptionView>);

TEST(RunOptionsTest, RolesTellWhatIsWhat) {
  const RunOptions options;
  const OptionView table = options.table();
  for (const Option& option : table) {
    const std::string group = option.key.substr(0, option.key.find('.'));
    const auto is_in = [&](const auto& names) {
      return std::find(names.begin(), names.end(), group) != names.end();
    };
    if (group == "runtime") {
      EXPECT_EQ(option.traits.role, OptionRole::execution) << option.key;
    } else if (is_in(names_of(probe_registry()))) {
      EXPECT_EQ(option.traits.role, OptionRole::measurement) << option.key;
    } else if (is_in(names_of(model_registry()))) {
      EXPECT_EQ(option.traits.cost, OptionCost::by_value) << option.key;
    } else if (is_in(names_of(optimizer_registry()))) {
      // Where a file lies is no part of what is computed, like data.path, and a config_id follows from the run_id.
      const bool follows = option.key == group + ".trust_path" || option.key == group + ".trust_setting";
      const OptionRole role = follows ? OptionRole::execution : OptionRole::identity;
      EXPECT_EQ(option.traits.role, role) << option.key;
    } else if (group == "data") {
      EXPECT_FALSE(option.traits.may_be_tuned()) << option.key;
    }
  }
}

TEST(RunOptionsTest, OneOptionTellsRepetitionsApart) {
  const RunOptions options;
  std::vector<std::string> found;
  for (const Option& option : options.table())
    if (option.traits.is_repetition) found.push_back(option.key);
  EXPECT_EQ(found, std::vector<std::string>{"seed"});
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

std::string refusal_of_probes_at(const std::string& at, const std::vector<std::string>& more) {
  std::vector<std::string> sets = {"probes.at=[\"" + at + "\"]"};
  sets.insert(sets.end(), more.begin(), more.end());
  try {
    check(from("", sets));
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(RunOptions, ProbesAreAtCheckpointsThatTheRunCanHave) {
  const std::vector<std::string> levels = {"loss_levels=[1.5]"};
  const std::vector<std::string> cadence = {"protocol=A-updates", "updates=100", "checkpoint_every=20"};
  EXPECT_EQ(
      refusal_of_probes_at("middle", levels),
      "unknown checkpoint in probes.at \"middle\"; known: end, start, average, loss, every, all, loss-1.5");
  EXPECT_THAT(refusal_of_probes_at("ned", {}), HasSubstr("did you mean \"end\"?"));
  EXPECT_THAT(refusal_of_probes_at("loss-1.4", levels), HasSubstr("did you mean \"loss-1.5\"?"));
  EXPECT_THAT(refusal_of_probes_at("u40", cadence),
              HasSubstr("known: end, start, average, loss, every, all, u000020, u000040"));
  for (const char* never : {"u40", "u000030", "u000120", "u00004x", "latest", ""})
    EXPECT_NE(refusal_of_probes_at(never, cadence), "") << never;
  EXPECT_NE(refusal_of_probes_at("u000040", {}), "") << "no checkpoint_every";
  for (const char* here : {"end", "start", "every", "all", "u000020", "u000100"})
    EXPECT_EQ(refusal_of_probes_at(here, cadence), "") << here;
  for (const char* here : {"loss", "loss-1.5"}) EXPECT_EQ(refusal_of_probes_at(here, levels), "") << here;
  EXPECT_EQ(refusal_of_probes_at("average", {"weight_average=0.99"}), "");
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
