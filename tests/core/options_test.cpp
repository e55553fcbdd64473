#include "core/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/toml_file.h"
#include "tests/support/message_of.h"

namespace basin {
namespace {

using testing::message_of;

struct Sample {
  bool flag = false;
  int64_t count = 3;
  double rate = 0.1;
  std::string name = "sgd";
  std::vector<int64_t> widths = {8, 16};
  std::vector<double> levels;
};

OptionTable table_of(Sample& s) {
  OptionTable table;
  table.add("name", s.name, one_of({"sgd", "lamb"}), "which");
  table.add("count", s.count, at_least(1), "how many");
  table.group("inner", [&](OptionTable& t) {
    t.add("rate", s.rate, half_open(0, 1), "how fast");
    t.add("widths", s.widths, at_least(1), "how wide");
    t.add("levels", s.levels, greater_than(0), "at which");
    t.add("flag", s.flag, anything(), "whether");
  });
  return table;
}

TEST(Options, PrintsCanonicalTomlThatReadsBackToTheSameText) {
  Sample s;
  OptionTable table = table_of(s);
  const std::string text =
      "name = \"sgd\"\ncount = 3\n\n[inner]\nrate = 0.1\nwidths = [8, 16]\nlevels = []\nflag = false\n";
  EXPECT_EQ(table.to_toml(), text);
  Sample other{true, 9, 0.5, "lamb", {1}, {2.5}};
  OptionTable second = table_of(other);
  set_all(second, parse_toml(text, "t.toml").entries);
  EXPECT_EQ(second.to_toml(), text);
}

TEST(Options, DoublesPrintTheShortestDigitsThatReadBackExactly) {
  for (const double value : {0.1, 1.0, 1e-300, 1.0 / 3.0, 123456789.0, -2.5e17}) {
    const auto document = parse_toml("v = " + to_toml(OptionValue(value)), "t.toml");
    EXPECT_EQ(std::get<double>(document.entries.at(0).value), value);
  }
  EXPECT_EQ(to_toml(OptionValue(1.0)), "1.0");
}

TEST(Options, StringsWithQuotesAndControlCharactersRoundTrip) {
  const std::string nasty = "a\"b\\c\nd\te\x01";
  const auto document = parse_toml("v = " + to_toml(OptionValue(nasty)), "t.toml");
  EXPECT_EQ(std::get<std::string>(document.entries.at(0).value), nasty);
}

TEST(Options, WholeNumbersServeAsNumbersAndNeverTheReverse) {
  Sample s;
  OptionTable table = table_of(s);
  table.set("inner.rate", int64_t{0}, "x:1");
  EXPECT_EQ(s.rate, 0.0);
  EXPECT_EQ(message_of([&] { table.set("count", 2.0, "study.toml:4"); }),
            "study.toml:4: count = 2.0 should be a whole number");
}

TEST(Options, MessagesNameLineKeyValueAndConstraint) {
  Sample s;
  OptionTable table = table_of(s);
  const auto entries = parse_toml("count = 0\n", "study.toml").entries;
  EXPECT_EQ(message_of([&] { set_all(table, entries); }), "study.toml:1: count = 0 violates count >= 1");
  EXPECT_EQ(message_of([&] { table.set("inner.rate", 1.0, "s:2"); }),
            "s:2: inner.rate = 1.0 violates inner.rate in [0, 1)");
  EXPECT_EQ(message_of([&] { table.set("name", std::string("adam"), "s:3"); }),
            "s:3: name = \"adam\" violates name one of sgd | lamb");
  EXPECT_EQ(message_of([&] { table.set("name", std::string("sgdd"), "s:3"); }),
            "s:3: name = \"sgdd\" violates name one of sgd | lamb; did you mean \"sgd\"?");
  EXPECT_EQ(message_of([&] { table.set("cuont", int64_t{1}, "s:4"); }),
            "s:4: unknown key \"cuont\"; did you mean \"count\"?");
  EXPECT_EQ(message_of([&] { table.set("rate", 0.5, "s:4"); }),
            "s:4: unknown key \"rate\"; did you mean \"inner.rate\"?");
  EXPECT_THAT(message_of([&] { table.set("inner.retained_graphs", true, "s:4"); }),
              ::testing::StartsWith("s:4: unknown key \"inner.retained_graphs\"; inner.* has rate, "));
  EXPECT_EQ(message_of([&] { table.set("inner.rate", NAN, "s:5"); }), "s:5: inner.rate = nan is not finite");
  EXPECT_EQ(
      message_of([&] { set_all(table, parse_toml("[inner]\nlevels = [1.0, inf]\n", "study.toml").entries); }),
      "study.toml:2: inner.levels = [1.0, inf] is not finite");
  EXPECT_EQ(message_of([&] { table.set_from_text("inner.rate=-inf", "--set"); }),
            "--set: inner.rate = -inf is not finite");
  EXPECT_TRUE(s.levels.empty());
  EXPECT_EQ(s.count, 3) << "a refused value must not be stored";
}

TEST(Options, ConstraintsHoldForEveryElementOfAList) {
  Sample s;
  OptionTable table = table_of(s);
  EXPECT_NE(message_of([&] { table.set("inner.widths", std::vector<int64_t>{4, 0}, "s:1"); }), "no error");
  table.set("inner.widths", std::vector<double>{}, "s:1");  // toml's empty list has no type
  EXPECT_TRUE(s.widths.empty());
  table.set("inner.levels", std::vector<int64_t>{2, 1}, "s:1");
  EXPECT_EQ(s.levels, (std::vector<double>{2, 1}));
}

TEST(Options, CommandLineTextIsTomlOrABareString) {
  Sample s;
  OptionTable table = table_of(s);
  table.set_from_text("name=lamb", "--set");
  table.set_from_text("count=7", "--set");
  table.set_from_text("inner.widths=[1, 2, 3]", "--set");
  table.set_from_text("inner.flag=true", "--set");
  EXPECT_EQ(s.name, "lamb");
  EXPECT_EQ(s.count, 7);
  EXPECT_EQ(s.widths, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_TRUE(s.flag);
  EXPECT_EQ(message_of([&] { table.set_from_text("count=many", "--set"); }),
            "--set: count = \"many\" should be a whole number");
  EXPECT_EQ(message_of([&] { table.set_from_text("count", "--set"); }),
            "--set: expected key=value, got \"count\"");
}

TEST(Options, RolesStandWithTheOption) {
  Sample s;
  OptionTable table;
  table.add("name", s.name, one_of({"sgd", "lamb"}), "which");
  table.within({.role = OptionRole::measurement, .cost = OptionCost::by_value}, [&](OptionTable& t) {
    t.add("count", s.count, at_least(1), "how many");
    t.add("flag", s.flag, anything(), "whether").execution();
  });
  table.add("rate", s.rate, anything(), "how fast").yardstick();
  table.add("levels", s.levels, anything(), "at which").costs_if_on();
  const auto traits = [&](const char* key) { return table.at(key).traits; };
  EXPECT_EQ(traits("name").role, OptionRole::identity);
  EXPECT_TRUE(traits("name").may_be_swept() && traits("name").may_be_tuned());
  EXPECT_EQ(traits("count").role, OptionRole::measurement);
  EXPECT_FALSE(traits("count").may_be_swept() || traits("count").may_be_tuned());
  EXPECT_EQ(traits("flag").role, OptionRole::execution);
  EXPECT_EQ(traits("flag").cost, OptionCost::by_value);
  EXPECT_TRUE(traits("rate").may_be_swept());
  EXPECT_FALSE(traits("rate").may_be_tuned());
  EXPECT_EQ(traits("rate").cost, OptionCost::none);
  EXPECT_EQ(traits("levels").cost, OptionCost::if_on);
}

void bind_options(OptionTable& table, Sample& s) {
  table.add("name", s.name, one_of({"sgd", "lamb"}), "which");
  table.add("count", s.count, at_least(1), "how many").execution();
}

template <class Table>
concept CanSet = requires(Table table) {
  table.set("name", std::string("lamb"), "");
};
template <class O>
concept HasView = requires(O&& options) {
  view_of(std::forward<O>(options));
};

TEST(OptionView, ShowsTheFieldsAsTheyAreNowAndSetsNone) {
  Sample s;
  const OptionView view = view_of(s);
  s.count = 7;
  EXPECT_EQ(view.at("count").get(), OptionValue(int64_t{7}));
  EXPECT_EQ(view.to_toml(), "name = \"sgd\"\ncount = 7\n");
  EXPECT_EQ(message_of([&] { view.at("cuont"); }), "unknown key \"cuont\"; did you mean \"count\"?");
  static_assert(CanSet<OptionTable> && !CanSet<OptionView>);
  static_assert(HasView<Sample&> && HasView<const Sample&>);
  static_assert(!HasView<Sample>, "a view of a temporary would outlive it");
}

TEST(OptionView, DefaultsOfOneRole) {
  Sample s;
  s.name = "lamb";
  s.count = 9;
  const Sample same = with_defaults(s, OptionRole::execution);
  EXPECT_EQ(same.name, "lamb");
  EXPECT_EQ(same.count, Sample().count);
}

TEST(Toml, KeepsFileOrderLinesAndTableArrays) {
  const auto document = parse_toml(
      "zebra = 1\nalpha = 2\n[sweep]\nseed = [1, 2]\n[[sweep.set]]\nwhen = { optimizer = \"lamb\", "
      "batch_size = [1, 2] }\n"
      "set = { learning_rate = 0.5 }\n",
      "s.toml");
  ASSERT_EQ(document.entries.size(), 3u);
  EXPECT_EQ(document.entries[0].key, "zebra");
  EXPECT_EQ(document.entries[2].key, "sweep.seed");
  EXPECT_EQ(document.entries[2].where, "s.toml:4");
  ASSERT_EQ(document.table_arrays.size(), 1u);
  EXPECT_EQ(document.table_arrays[0].key, "sweep.set");
  ASSERT_EQ(document.table_arrays[0].tables[0].size(), 3u);
  EXPECT_EQ(document.table_arrays[0].tables[0][2].key, "set.learning_rate");
}

TEST(Toml, ErrorsNameTheLine) {
  EXPECT_THAT(message_of([] { parse_toml("a = 1\nb = = 2\n", "s.toml"); }),
              ::testing::StartsWith("s.toml:2: "));
  EXPECT_EQ(message_of([] { parse_toml("a = 1979-05-27\n", "s.toml"); }),
            "s.toml:1: dates and times are not used here");
  EXPECT_EQ(message_of([] { parse_toml("a = nan\n", "s.toml"); }), "s.toml:1: nan is not a value");
}

TEST(Toml, ErrorsAreOneLineWhateverTheyQuote) {
  const std::string unfinished = message_of([] { parse_toml("a = t\nb = 1\n", "s.toml"); });
  EXPECT_THAT(unfinished, ::testing::EndsWith("saw 't\\n'"));
  EXPECT_EQ(parse_toml("\"a\\nb\\u0007\" = 1", "s.toml").entries.at(0).key, "a\\nb\\x07");
  // Outside ASCII and in none of toml++'s lists: "Њ" where a key is expected.
  EXPECT_THAT(message_of([] { parse_toml("\xd0\x8a#", "s.toml"); }), ::testing::StartsWith("s.toml:1: "));
}

}  // namespace
}  // namespace basin
