// Claims that processes make by number: one holder each, released by any kind of end.
#include "sweep/claims.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "core/error.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

constexpr int64_t kLargest = 0xffffffffffff;  // of twelve hexadecimal digits

TEST(Claims, HaveOneHolderEach) {
  const testing::TemporaryFolder folder;
  Claims mine(folder / "claims"),
      theirs(folder / "claims");  // descriptors of their own, as two processes have
  EXPECT_TRUE(mine.take(kLargest));
  EXPECT_TRUE(mine.take(kLargest));
  EXPECT_FALSE(theirs.take(kLargest));
  EXPECT_TRUE(theirs.take(kLargest - 1));
  mine.release(kLargest);
  EXPECT_TRUE(theirs.take(kLargest));
}

TEST(Claims, EndWithTheProcessThatIsKilled) {
  const testing::TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Claims claims(folder / "claims");
    const char said = claims.take(7) ? 'y' : 'n';
    if (::write(ready[1], &said, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char said = 0;
  ASSERT_EQ(::read(ready[0], &said, 1), 1);
  ASSERT_EQ(said, 'y');
  Claims claims(folder / "claims");
  EXPECT_FALSE(claims.take(7));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(claims.take(7));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(Claims, NeedAFileThatCanBeOpened) {
  const testing::TemporaryFolder folder;
  EXPECT_THROW(Claims(folder / "none/claims"), IoError);
}

}  // namespace
}  // namespace basin
