// What sbatch gets: arguments, quoting, ranges of tasks; which of sbatch's options people may give; Slurm's times.
#include "sweep/launch/batch_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/files.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_files.h"

namespace basin {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using testing::write_text;

BatchJob example() {
  BatchJob job;
  job.name = "basin-study-2";
  job.folder = "/data/my runs/p%j/slurm";
  job.command = {"/opt/basin", "sweep", "/data/my runs/study.toml", "--out", "/data/o'brien"};
  job.tasks = {1, 2, 3, 7};
  job.shards = 8;
  job.minutes = 45;
  job.cpus = 4;
  job.after = "17";
  job.given = parse_sbatch_options({"partition=gpu", "--gpus-per-task=1", "exclusive"});
  return job;
}

TEST(BatchScript, ArgumentsSayWhatTheJobNeeds) {
  EXPECT_THAT(sbatch_arguments(example()),
              ElementsAre("--job-name=basin-study-2", "--array=1-3,7",
                          "--output=/data/my runs/p%%j/slurm/%A_%a.log", "--open-mode=append", "--requeue",
                          "--ntasks=1", "--cpus-per-task=4", "--time=45", "--signal=B:USR1@120",
                          "--dependency=afterany:17", "--partition=gpu", "--gpus-per-task=1", "--exclusive"));
  BatchJob job = example();
  job.after.clear();
  EXPECT_THAT(sbatch_arguments(job), Not(Contains(HasSubstr("dependency"))));
}

TEST(BatchScript, IsToldInTimeThatItsTimeEnds) {
  BatchJob job = example();
  job.minutes = 1;
  EXPECT_THAT(sbatch_arguments(job), Contains("--signal=B:USR1@20"));
  job.given = parse_sbatch_options({"time=0:02:00"});
  EXPECT_THAT(sbatch_arguments(job), Contains("--signal=B:USR1@40"));
}

TEST(BatchScript, QuotesForTheShell) {
  const std::string script = batch_script(example());
  for (const char* line :
       {"#!/bin/bash\n# sbatch --job-name=basin-study-2 --array=1-3,7 '--output=/data/my runs/",
        "\nshards=8\nretry=()\n",
        "\ncommand=(/opt/basin sweep '/data/my runs/study.toml' --out '/data/o'\\''brien')\n",
        "\nfolder='/data/my runs/p%j/slurm'\n"})
    EXPECT_THAT(script, HasSubstr(line));
  BatchJob job = example();
  job.retry_failed = true;
  EXPECT_THAT(batch_script(job), HasSubstr("\nretry=(--retry failed)\n"));
}

/// A task whose program writes nothing or a checkpoint and then waits; Slurm's commands write down that they were called.
class Task {
 public:
  Task() {
    make_folders(folder_ / "out/slurm");
    make_folders(folder_ / "out/runs/a");
    write_program("scontrol", "echo \"$@\" >>" + (folder_ / "requeued"));
    // In the same tick of the file system's clock a file isn't newer than the task's beginning.
    write_program("worker", "sleep 0.1\n[ -e " + (folder_ / "writes") + " ] && : >" +
                                (folder_ / "out/runs/a/latest.h5") + "\n: >" + (folder_ / "working") +
                                "\nexec sleep 60");
    BatchJob job;
    job.name = "task";
    job.folder = folder_ / "out/slurm";
    job.command = {folder_ / "worker"};
    write_text(folder_ / "task.sh", batch_script(job));
  }
  /// Exit code where its time limit comes near.
  int run(bool writes) const {
    if (writes) write_text(folder_ / "writes", "");
    if (!writes) std::filesystem::remove(folder_ / "writes");
    std::filesystem::remove(folder_ / "working");
    const std::string script =
        "cd " + folder_.path() +
        "; PATH=$PWD:$PATH SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=1 bash task.sh 2>said & "
        "while [ ! -e working ]; do sleep 0.05; done; kill -USR1 $!; wait $!";
    return WEXITSTATUS(std::system(("bash -c '" + script + "'").c_str()));
  }
  std::string file(const std::string& name) const { return read_file(folder_ / name); }

 private:
  void write_program(const std::string& name, const std::string& lines) const {
    write_text(folder_ / name, "#!/bin/bash\n" + lines + "\n");
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }
  testing::TemporaryFolder folder_;
};

TEST(BatchScript, ATaskThatGetsNowhereGivesUp) {
  const Task task;
  EXPECT_EQ(task.run(true), 0);
  EXPECT_EQ(task.run(false), 0);  // once may be a slow node
  EXPECT_EQ(task.run(true), 0);
  EXPECT_EQ(task.run(false), 0);
  EXPECT_EQ(task.file("requeued"), "requeue 7_1\nrequeue 7_1\nrequeue 7_1\nrequeue 7_1\n");
  EXPECT_EQ(task.run(false), 1);
  EXPECT_THAT(task.file("said"), HasSubstr("nothing was finished within the time limit, twice in a row"));
  EXPECT_EQ(task.file("requeued").size(), 4 * std::string("requeue 7_1\n").size());
}

TEST(MinutesOf, ReadsSlurmsTimes) {
  const std::pair<const char*, int64_t> times[] = {{"90", 90},
                                                   {"90:30", 90},
                                                   {"2:30:00", 150},
                                                   {"1-2", 26 * 60},
                                                   {"1-2:30", 26 * 60 + 30},
                                                   {"7-00:00:00", 7 * 24 * 60}};
  for (const auto& [text, minutes] : times) EXPECT_EQ(minutes_of(text), minutes) << text;
  for (const char* text : {"UNLIMITED", "", "an hour"}) EXPECT_EQ(minutes_of(text), std::nullopt) << text;
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
  for (const char* text : {"=x", "Mem=4G", "mem 4G", "a=b\nc"})
    EXPECT_THAT(message_of([&] { parse_sbatch_options({text}); }), HasSubstr("not KEY=VALUE")) << text;
  for (const char* text :
       {"array=1-3", "dependency=after:3", "requeue", "output=x", "job-name=x", "clusters=b"})
    EXPECT_THAT(message_of([&] { parse_sbatch_options({text}); }), HasSubstr("set by Basin")) << text;
}

}  // namespace
}  // namespace basin
