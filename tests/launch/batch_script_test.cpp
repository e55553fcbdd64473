// What sbatch gets: directives, quoting, ranges of tasks; which of sbatch's options people may give.
#include "launch/batch_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace basin {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;

BatchJob example() {
  BatchJob job;
  job.name = "basin-study-2";
  job.log = "/data/my runs/out/slurm/%A_%a.log";
  job.command = {"/opt/basin", "sweep", "/data/my runs/out/study.toml", "--out", "/data/my runs/out"};
  job.tasks = {1, 2, 3, 7};
  job.shards = 8;
  job.minutes = 45;
  job.cpus = 4;
  job.after = "17";
  job.given = parse_sbatch_options({"partition=gpu", "--gpus-per-task=1", "exclusive", "time=90"});
  return job;
}

TEST(BatchScript, HasTheDirectivesOfItsJob) {
  const std::string script = batch_script(example());
  for (const char* line :
       {"#!/bin/bash\n", "#SBATCH --job-name=basin-study-2\n", "#SBATCH --array=1-3,7\n",
        "#SBATCH --requeue\n", "#SBATCH --output=\"/data/my runs/out/slurm/%A_%a.log\"\n",
        "#SBATCH --cpus-per-task=4\n", "#SBATCH --dependency=afterany:17\n", "#SBATCH --signal=B:USR1@120\n",
        "#SBATCH --partition=gpu\n", "#SBATCH --gpus-per-task=1\n", "#SBATCH --exclusive\n", "shards=8\n",
        "command=(/opt/basin sweep '/data/my runs/out/study.toml' --out '/data/my runs/out')\n"})
    EXPECT_THAT(script, HasSubstr(line));
  // sbatch takes the later of two directives.
  EXPECT_GT(script.find("#SBATCH --time=90"), script.find("#SBATCH --time=45"));
  // sbatch reads directives up to the first command.
  EXPECT_LT(script.rfind("#SBATCH"), script.find("command="));
}

TEST(BatchScript, BeginsAtOnceWithoutAJobBefore) {
  BatchJob job = example();
  job.after.clear();
  EXPECT_THAT(batch_script(job), Not(HasSubstr("dependency")));
}

TEST(BatchScript, IsToldInTimeThatItsTimeEnds) {
  BatchJob job = example();
  job.minutes = 1;
  EXPECT_THAT(batch_script(job), HasSubstr("--signal=B:USR1@20\n"));
}

TEST(RangesOf, JoinNeighbours) {
  EXPECT_EQ(ranges_of({5}), "5");
  EXPECT_EQ(ranges_of({1, 2}), "1-2");
  EXPECT_EQ(ranges_of({1, 3, 4, 5, 9, 11, 12}), "1,3-5,9,11-12");
}

TEST(Quoted, SurvivesTheShell) {
  EXPECT_EQ(quoted("a/b-c_1.toml"), "a/b-c_1.toml");
  EXPECT_EQ(quoted("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(quoted(""), "''");
}

TEST(SbatchOptions, AreSbatchsOwnWords) {
  const SbatchOptions options = parse_sbatch_options({"mem=4G", "comment=a=b c", "exclusive"});
  EXPECT_EQ(value_of(options, "mem"), "4G");
  EXPECT_EQ(value_of(options, "comment"), "a=b c");
  EXPECT_EQ(value_of(options, "exclusive"), "");
  for (const char* text : {"=x", "Mem=4G", "mem 4G", "mem=\"4G\"", "a=b\nc"})
    EXPECT_THAT(message_of([&] { parse_sbatch_options({text}); }), HasSubstr("not KEY=VALUE")) << text;
  for (const char* text : {"array=1-3", "dependency=after:3", "requeue", "output=x"})
    EXPECT_THAT(message_of([&] { parse_sbatch_options({text}); }), HasSubstr("set by Basin")) << text;
}

}  // namespace
}  // namespace basin
