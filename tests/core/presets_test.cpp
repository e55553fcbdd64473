// A preset gives its values to what isn't set by hand, in whatever order.
#include <gtest/gtest.h>

#include "core/presets.h"
#include "core/toml_file.h"

namespace basin {
namespace {

struct Dish : WithPreset {
  Dish() { preset = values_of = "plain"; }
  double salt = 1;
  std::string sauce = "none";
};

void bind_fields(OptionTable& table, Dish& dish) {
  table.add("salt", dish.salt, at_least(0), "grams");
  table.add("sauce", dish.sauce, one_of({"none", "tomato"}), "poured over it");
}

const std::vector<Preset<Dish>>& dishes() {
  static const std::vector<Preset<Dish>> all = [] {
    Dish italian;
    italian.salt = 3;
    italian.sauce = "tomato";
    return std::vector<Preset<Dish>>{preset("plain", Dish()), preset("italian", italian)};
  }();
  return all;
}

/// The dish after these settings, in a group as optimisers have one.
Dish after(const std::vector<std::string>& settings) {
  Dish dish;
  OptionTable table;
  table.group("dish", [&](OptionTable& t) { bind_presets(t, dish, dishes(), bind_fields, "which"); });
  for (const std::string& setting : settings) table.set_from_text("dish." + setting, "test");
  return dish;
}

TEST(Presets, FillInWhatIsNotSetByHandInAnyOrder) {
  EXPECT_EQ(after({}).salt, 1);
  EXPECT_EQ(after({"preset=italian"}).salt, 3);
  EXPECT_EQ(after({"preset=italian"}).sauce, "tomato");
  for (const auto& order :
       {std::vector<std::string>{"preset=italian", "salt=2"}, {"salt=2", "preset=italian"}}) {
    EXPECT_EQ(after(order).salt, 2);
    EXPECT_EQ(after(order).sauce, "tomato");
    EXPECT_EQ(after(order).preset, "italian");
  }
  EXPECT_EQ(after({"preset=italian", "preset=plain"}).sauce, "none");
  // Set by hand to what the preset says anyway is set by hand.
  EXPECT_EQ(after({"salt=1", "preset=italian"}).salt, 1);
}

TEST(Presets, ShowTheValuesThatCountAndReadBack) {
  Dish dish = after({"preset=italian", "salt=2"}), again;
  OptionTable table, other;
  bind_presets(table, dish, dishes(), bind_fields, "which");
  bind_presets(other, again, dishes(), bind_fields, "which");
  EXPECT_EQ(table.to_toml(), "preset = \"italian\"\nsalt = 2.0\nsauce = \"tomato\"\n");
  set_all(other, parse_toml(table.to_toml(), "resolved").entries);
  EXPECT_EQ(other.to_toml(), table.to_toml());
}

// Over a resolved file another preset's name would stand next to the old values.
TEST(Presets, RefuseANameThatChangesNothing) {
  EXPECT_THROW(after({"salt=2", "sauce=none", "preset=italian"}), ConfigError);
  EXPECT_NO_THROW(after({"salt=2", "sauce=none", "preset=plain"}));
  EXPECT_THROW(after({"preset=french"}), ConfigError);
}

}  // namespace
}  // namespace basin
