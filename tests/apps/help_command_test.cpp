// What `basin` says about itself: --version, --help and `basin help`.
#include <gmock/gmock.h>

#include "core/build_info.h"
#include "tests/support/run_binary.h"

namespace basin::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(HelpCommand, VersionNamesTheBuildAndItsLibraries) {
  const BinaryResult answer = run_binary({"--version"});
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_THAT(answer.out, AllOf(StartsWith(std::string("basin ") + build_version() + " (commit "),
                                HasSubstr("libtorch"), HasSubstr("hdf5")));
}

TEST(HelpCommand, IsTheSubcommandsOwnHelp) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{}, {"sweep"}, {"data", "get"}}) {
    std::vector<std::string> asked = {"help"}, own = words;
    asked.insert(asked.end(), words.begin(), words.end());
    own.emplace_back("--help");
    const BinaryResult help = run_binary(asked), option = run_binary(own);
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_EQ(help.out, option.out);
  }
}

TEST(HelpCommand, AnUnknownSubcommandIsOneLine) {
  const BinaryResult typo = run_binary({"help", "swep"}), hidden = run_binary({"help", "run-cell"});
  EXPECT_EQ(typo.exit_code, 2);
  EXPECT_THAT(typo.err, HasSubstr("unknown subcommand \"swep\"; did you mean \"sweep\"?"));
  EXPECT_EQ(hidden.exit_code, 2) << "workers' subcommands are no one else's";
  EXPECT_THAT(run_binary({"help", "sweep", "more"}).err, HasSubstr("\"sweep\" has no subcommands"));
}

/// The kinds of error and their codes stand in core/error.h; here what a user reads of them.
TEST(HelpCommand, HelpNamesTheExitCodes) {
  const BinaryResult help = run_binary({"--help"});
  for (const char* said :
       {"Exit codes:\n", "0  done", "2  study", "3  data", "4  file", "5  no such", "6  arith", "130, 143"})
    EXPECT_THAT(help.out, HasSubstr(said));
}

}  // namespace
}  // namespace basin::testing
