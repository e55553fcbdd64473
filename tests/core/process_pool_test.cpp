// Worker processes: what comes back from commands whose end is known.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <future>
#include <iostream>
#include <thread>

#include "core/error.h"
#include "core/files.h"
#include "core/process_pool.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

class Pool : public ::testing::Test {
 protected:
  ProcessJob shell(const std::string& id, const std::string& script) {
    return {id, {"/bin/sh"}, {"-c", script}, folder_ / (id + ".log"), {}, 0};
  }
  std::vector<ProcessResult> all(ProcessPool& pool) {
    std::vector<ProcessResult> results;
    while (pool.running() > 0) {
      for (const ProcessResult& result : pool.collect(10)) results.push_back(result);
    }
    return results;
  }
  std::string log(const std::string& id) { return read_file(folder_ / (id + ".log")); }
  testing::TemporaryFolder folder_;
};

TEST_F(Pool, TellsExitCodesAndSignalsApart) {
  ProcessPool pool;
  pool.start(shell("good", "exit 0"));
  pool.start(shell("bad", "exit 7"));
  pool.start(shell("shot", "kill -SEGV $$"));
  std::map<std::string, ProcessResult> by_id;
  for (const ProcessResult& result : all(pool)) by_id[result.id] = result;
  ASSERT_EQ(by_id.size(), 3u);
  EXPECT_TRUE(by_id["good"].ok());
  EXPECT_FALSE(by_id["bad"].ok());
  EXPECT_EQ(by_id["bad"].exit_code, 7);
  EXPECT_EQ(by_id["bad"].describe(), "exit code 7");
  EXPECT_EQ(by_id["shot"].signal, SIGSEGV);
  EXPECT_THAT(by_id["shot"].describe(), ::testing::HasSubstr("signal 11"));
  EXPECT_GT(by_id["good"].peak_megabytes, 0);
}

TEST_F(Pool, AppendsBothStreamsToTheLogAndSetsTheEnvironment) {
  ProcessPool pool;
  write_file_atomically(folder_ / "a.log", "before\n");
  ProcessJob job = shell("a", "echo out $COLOUR; echo err >&2");
  job.environment = {{"COLOUR", "green"}};
  pool.start(job);
  all(pool);
  EXPECT_EQ(log("a"), "before\nout green\nerr\n");
}

int main_of_a_fork(int argc, char** argv) {
  std::printf("%d %s %s", argc, argv[1], std::getenv("COLOUR"));
  std::cout << " and this\n" << std::flush;
  return fcntl(STDERR_FILENO + 1, F_GETFD) < 0 && errno == EBADF ? 7 : 8;  // 8: holds a file of the parent's
}

TEST_F(Pool, CallsAMainInAForkWhereThereIsOneThread) {
  ProcessPool pool;
  ProcessJob job = shell("a", "exit 3");
  job.program.main = main_of_a_fork;
  job.environment = {{"COLOUR", "green"}};
  const int of_the_parent = open("/dev/null", O_RDONLY);
  std::printf("of the parent");
  pool.start(job);
  const ProcessResult result = all(pool).at(0);
  close(of_the_parent);
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(log("a"), "3 -c green and this\n");
  EXPECT_EQ(std::getenv("COLOUR"), nullptr);
}

TEST_F(Pool, ExecutesTheProgramWhereThereAreThreads) {
  ProcessPool pool;
  ProcessJob job = shell("a", "exit 3");
  job.program.main = main_of_a_fork;
  std::promise<void> end;
  std::thread other([&] { end.get_future().wait(); });
  pool.start(job);
  const ProcessResult result = all(pool).at(0);
  end.set_value();
  other.join();
  EXPECT_EQ(result.exit_code, 3);
}

TEST_F(Pool, TellsOfAWorkerWhoseEndItDidNotSee) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);  // the kernel then keeps no exit status
  ProcessPool pool;
  pool.start(shell("unseen", "exit 0"));
  const std::vector<ProcessResult> results = all(pool);
  std::signal(SIGCHLD, before);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_FALSE(results[0].ok());
  EXPECT_EQ(results[0].describe(), "its exit status was lost");
}

TEST_F(Pool, KillsWhatRunsPastItsTimeout) {
  ProcessPool pool;
  ProcessJob job = shell("slow", "exec sleep 60");
  job.timeout_seconds = 0.2;
  pool.start(job);
  const std::vector<ProcessResult> results = all(pool);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_TRUE(results[0].timed_out);
  EXPECT_LT(results[0].seconds, 30);
}

TEST_F(Pool, PassesASignalOn) {
  ProcessPool pool;
  pool.start(shell("polite", "trap 'exit 143' TERM; echo up; while :; do sleep 0.05; done"));
  while (log("polite").empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  pool.signal_all(SIGTERM);
  const std::vector<ProcessResult> results = all(pool);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].exit_code, 143);
}

TEST_F(Pool, ReportsAProgramThatIsNotThere) {
  ProcessPool pool;
  ProcessJob job = shell("none", "");
  job.program.path = "/nonexistent/program";
  pool.start(job);
  EXPECT_EQ(all(pool).at(0).exit_code, 127);
  EXPECT_THAT(log("none"), ::testing::HasSubstr("cannot execute"));
}

TEST_F(Pool, RefusesALogThatCannotBeOpened) {
  ProcessPool pool;
  ProcessJob job = shell("a", "exit 0");
  job.log = "/nonexistent/folder/a.log";
  EXPECT_THROW(pool.start(job), IoError);
  EXPECT_EQ(pool.running(), 0u);
}

// A parent that is killed outright takes its workers along: the worker's own pid must be gone soon after.
TEST_F(Pool, WorkersDieWithAKilledParent) {
  const pid_t parent = fork();
  if (parent == 0) {
    ProcessPool pool;
    pool.start(shell("orphan", "echo $$; exec sleep 60"));
    pool.collect(60);
    _exit(0);
  }
  while (!std::filesystem::exists(folder_ / "orphan.log") || log("orphan").find('\n') == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const pid_t worker = std::stoi(log("orphan"));
  ASSERT_EQ(kill(worker, 0), 0);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  // Gone or a zombie waiting for init to reap it; either way it no longer runs.
  auto runs = [&] {
    std::ifstream stat("/proc/" + std::to_string(worker) + "/stat");
    std::string pid, name, state;
    return static_cast<bool>(stat >> pid >> name >> state) && state != "Z";
  };
  for (int i = 0; i < 500 && runs(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(runs());
}

}  // namespace
}  // namespace basin
