// One process at a time, and who is refused learns by whom.
#include "core/file_lock.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "core/error.h"
#include "core/files.h"
#include "core/provenance.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const IoError& error) {
    return error.what();
  }
  return "no error";
}

/// A process that takes a lock and keeps it until it is killed.
class Holder {
 public:
  explicit Holder(const std::string& path) {
    int ready[2];
    if (::pipe(ready) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      const FileLock lock(path, "the holder");
      if (::write(ready[1], "", 1) == 1) ::pause();
      ::_exit(1);
    }
    char byte;
    ::close(ready[1]);
    if (::read(ready[0], &byte, 1) != 1) throw std::runtime_error("the holder has no lock");
    ::close(ready[0]);
  }
  ~Holder() {
    if (pid_ > 0) kill();
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(FileLock, AnotherProcessIsRefusedWithHostAndPidUntilTheHolderIsKilled) {
  const TemporaryFolder folder;
  const std::string path = folder / "lock";
  Holder holder(path);
  EXPECT_EQ(refusal([&] { FileLock(path, "out/study"); }),
            fmt::format("out/study: in use by pid {} on host {} (lock {})", holder.pid(), host_name(), path));
  EXPECT_FALSE(FileLock::attempt(path));
  EXPECT_FALSE(FileLock::holder_was_killed(path));
  holder.kill();
  EXPECT_TRUE(FileLock::holder_was_killed(path));
  const FileLock lock(path, "out/study");  // the killed one's name is still in the file; ours takes its place
  EXPECT_EQ(read_file(path), fmt::format("pid {} on host {}\n", ::getpid(), host_name()));
}

TEST(FileLock, OnlyAProcessOfThisHostThatIsGoneWasKilled) {
  const TemporaryFolder folder;
  const auto was_killed = [&](const std::string& name) {
    write_file(folder / "lock", name);
    return FileLock::holder_was_killed(folder / "lock");
  };
  EXPECT_FALSE(FileLock::holder_was_killed(folder / "lock"));  // no such file
  EXPECT_FALSE(was_killed(""));
  EXPECT_FALSE(was_killed("pid -1 on host " + host_name() + "\n"));
  int gone = ::fork();
  if (gone == 0) ::_exit(0);
  siginfo_t ended = {};
  ASSERT_EQ(::waitid(P_PID, gone, &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(was_killed(fmt::format("pid {} on host {}\n", gone, host_name()))) << "dead and not waited for";
  ::waitpid(gone, nullptr, 0);
  EXPECT_TRUE(was_killed(fmt::format("pid {} on host {}\n", gone, host_name())));
  EXPECT_FALSE(was_killed(fmt::format("pid {} on host {}-2\n", gone, host_name())));
}

TEST(FileLock, WaitingEndsWithTheHolder) {
  const TemporaryFolder folder;
  Holder holder(folder / "lock");
  const auto start = std::chrono::steady_clock::now();
  const pid_t killer = ::fork();
  if (killer == 0) {
    ::usleep(200'000);
    ::kill(holder.pid(), SIGKILL);
    ::_exit(0);
  }
  const FileLock lock = FileLock::wait(folder / "lock");
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(200))
      << "the lock came while its holder lived";
  int status = 0;
  ASSERT_EQ(::waitpid(holder.pid(), &status, 0), holder.pid());
  EXPECT_TRUE(WIFSIGNALED(status));
  ::waitpid(killer, nullptr, 0);
  EXPECT_THAT(refusal([&] { FileLock(folder / "lock", "x"); }), HasSubstr(std::to_string(::getpid())));
}

// flock belongs to the open file: a second open in this process meets the same conflict as another process.
TEST(FileLock, IsFreedWithItsOwnerAndNamesNobodyThen) {
  const TemporaryFolder folder;
  const std::string path = folder / "lock";
  {
    std::optional<FileLock> first = FileLock::attempt(path);
    ASSERT_TRUE(first);
    const FileLock moved = std::move(*first);
    first.reset();  // holds nothing any more
    EXPECT_FALSE(FileLock::attempt(path));
  }
  EXPECT_EQ(read_file(path), "");
  EXPECT_TRUE(FileLock::attempt(path));
}

TEST(FileLock, SharedOnesKeepOutTheOneThatIsAlone) {
  const TemporaryFolder folder;
  const std::string path = folder / "users";
  std::optional<FileLock> first(FileLock::share(path));
  const FileLock second = FileLock::share(path);
  EXPECT_FALSE(FileLock::attempt(path));
  EXPECT_THAT(refusal([&] { FileLock(path, "tiles"); }), HasSubstr("tiles: in use by another process"));
  first.reset();
  EXPECT_FALSE(FileLock::attempt(path));
}

TEST(FileLock, AFolderThatIsNotThereIsAnErrorOfItsOwn) {
  EXPECT_THAT(refusal([] { FileLock("/nowhere/lock", "x"); }),
              AllOf(HasSubstr("cannot lock /nowhere/lock"), HasSubstr("No such file")));
}

}  // namespace
}  // namespace basin
