// Whose variances a pilot gives.
#include <gtest/gtest.h>

#include "io/schema.h"
#include "sweep/pilot.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

/// A verdicts.h5 of three contrasts.
std::string pilot_in(const testing::TemporaryFolder& folder) {
  std::string path = folder / "verdicts.h5";
  h5::File file = create_schema_file(path, kVerdictsSchema);
  h5::Group group = file.create_group("contrasts");
  group.write_texts("name", {"drop", "speed", "back"});
  group.write_texts("kind", {"plain", "plain", "recovery"});
  group.write_texts("outcome", {"test_acc", "updates", "test_acc"});
  group.write_texts("scale", {"difference", "ratio", "difference"});
  group.write("var_seed", std::vector<double>{1, 2, 3});
  group.write("var_image", std::vector<double>{0.1, NAN, 0});
  group.write("var_rest", std::vector<double>{0.2, NAN, 0});
  file.save();
  return path;
}

Contrast asked(const std::string& name, const std::string& outcome, const std::string& scale) {
  Contrast contrast;
  contrast.name = name;
  contrast.where = "s.toml:7";
  contrast.outcome = outcome;
  contrast.scale = scale;
  return contrast;
}

TEST(Pilot, GivesTheNamesakesVariancesElseThoseOfTheSameOutcomeAndScale) {
  const testing::TemporaryFolder folder;
  const Pilot pilot(pilot_in(folder));
  EXPECT_EQ(pilot.of(asked("drop", "test_acc", "difference"), {})->seed, 1);
  EXPECT_EQ(pilot.of(asked("new", "updates", "ratio"), {})->source, "speed");
  EXPECT_FALSE(pilot.of(asked("new", "test_acc", "ratio"), {}).has_value());
}

TEST(Pilot, AContrastOfThatNameWithAnotherOutcomeOrScaleIsNoNamesake) {
  const testing::TemporaryFolder folder;
  const Pilot pilot(pilot_in(folder));
  EXPECT_FALSE(pilot.of(asked("drop", "test_loss", "difference"), {}).has_value());
  EXPECT_FALSE(pilot.of(asked("speed", "updates", "difference"), {}).has_value());
  EXPECT_EQ(pilot.of(asked("speed", "test_acc", "difference"), {})->source, "drop");
  EXPECT_EQ(pilot.of(asked("back", "test_acc", "difference"), {})->source, "drop");  // back is a recovery
}

}  // namespace
}  // namespace basin
