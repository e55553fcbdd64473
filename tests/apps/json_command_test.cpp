// What --json makes of numbers that aren't finite: tests/python/commands/test_json_output.py has the rest.
#include <gmock/gmock.h>

#include "io/probe_file.h"
#include "tests/support/run_binary.h"
#include "tests/support/temporary_folder.h"

namespace basin::testing {
namespace {

using ::testing::HasSubstr;

/// The text of a member of a printed number.
std::string line(const std::string& member, const std::string& value) {
  return fmt::format("\n    \"{}\": {},\n", member, value);
}

TEST(JsonCommand, WhatIsNotFiniteIsNullWithItsStatus) {
  const TemporaryFolder folder;
  ProbeRecord record;
  record.probe = "noise_scale";
  record.status = ProbeStatus::nonfinite;
  record.attributes = {{"train_loss", INFINITY}};
  record.quantities = {{.name = "b_simple",
                        .definition = "noise-scale",
                        .units = "examples",
                        .long_name = "noise scale",
                        .uncertainty_kind = UncertaintyKind::standard_error,
                        .status = ProbeStatus::nonfinite,
                        .value = {NAN},
                        .uncertainty = {INFINITY}}};
  write_probe_file(folder / "probe.h5", record);
  const BinaryResult shown = run_binary({"inspect", folder / "probe.h5", "--json"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr(line("value", "null")));
  EXPECT_THAT(shown.out, HasSubstr(line("uncertainty", "null")));
  EXPECT_THAT(shown.out, HasSubstr(line("ci_low", "null")));
  EXPECT_THAT(shown.out, HasSubstr(line("status", "\"nonfinite\"")));
  EXPECT_THAT(shown.out, HasSubstr("\"train_loss\": null"));
}

TEST(JsonCommand, NumbersHaveEveryDigit) {
  const TemporaryFolder folder;
  ProbeRecord record;
  Quantity pair;
  pair.name = pair.definition = "x";
  pair.value = {0.1 + 0.2, 5e-324};
  pair.is_vector = true;
  record.quantities = {pair};
  write_probe_file(folder / "probe.h5", record);
  const BinaryResult shown = run_binary({"inspect", folder / "probe.h5", "--json"});
  EXPECT_THAT(shown.out, HasSubstr(line("value", "0.30000000000000004")));
  EXPECT_THAT(shown.out, HasSubstr(line("value", "5e-324")));
}

}  // namespace
}  // namespace basin::testing
