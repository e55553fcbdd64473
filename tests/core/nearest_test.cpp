// What is said of a name that isn't one.
#include "core/nearest.h"

#include <gtest/gtest.h>

#include "core/options.h"
#include "tests/support/message_of.h"

namespace basin {
namespace {

using testing::message_of;

const std::vector<std::string> kNames = {"sgd", "lamb", "top_eigenvalues"};

TEST(Nearest, NamesWhatIsTwoEditsAwayOrAThirdOfWhatWasTyped) {
  EXPECT_EQ(did_you_mean("sgdd", kNames), "; did you mean \"sgd\"?");
  EXPECT_EQ(did_you_mean("lmab", kNames), "; did you mean \"lamb\"?");
  EXPECT_EQ(did_you_mean("eigenvalues", kNames), "") << "four edits, of eleven letters";
  EXPECT_EQ(did_you_mean("top_eigenvaluation", kNames), "; did you mean \"top_eigenvalues\"?");
  EXPECT_EQ(did_you_mean("adamw", kNames), "");
}

TEST(Nearest, TakesNoShortNameForAnyOther) {
  EXPECT_EQ(did_you_mean("C", {"A", "B"}), "");
  EXPECT_EQ(did_you_mean("", kNames), "");
  EXPECT_EQ(did_you_mean("ab", {"xy"}), "");
}

TEST(Nearest, ListsWhatThereIs) {
  EXPECT_EQ(unknown_name("optimizer", "sgdd", kNames),
            "unknown optimizer \"sgdd\"; did you mean \"sgd\"? known: sgd, lamb, top_eigenvalues");
  EXPECT_EQ(unknown_name("optimizer", "adamw", kNames),
            "unknown optimizer \"adamw\"; known: sgd, lamb, top_eigenvalues");
}

TEST(Nearest, IsSaidOfTheFirstWrongElementOfAList) {
  std::vector<std::string> names = {"sgd"};
  OptionTable table;
  table.add("names", names, distinct(one_of(kNames)), "which");
  EXPECT_EQ(table.at("names").constraint.names, kNames);
  EXPECT_EQ(
      message_of([&] {
        table.set("names", std::vector<std::string>{"sgd", "lmb"}, "s:1");
      }),
      "s:1: names = [\"sgd\", \"lmb\"] violates names at least one, none twice, each one of sgd | lamb | "
      "top_eigenvalues; did you mean \"lamb\"?");
  EXPECT_EQ(
      message_of([&] {
        table.set("names", std::vector<std::string>{"sgd", "sgd"}, "s:1");
      }),
      "s:1: names = [\"sgd\", \"sgd\"] violates names at least one, none twice, each one of sgd | lamb | "
      "top_eigenvalues");
}

}  // namespace
}  // namespace basin
