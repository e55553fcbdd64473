// defines: OptionValue, the value of an option or an attribute.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace basin {

using OptionValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                                 std::vector<double>, std::vector<std::string>>;

/// TOML text of a value: `0.1`, `"lamb"`, `[8, 16, 32]`. Doubles print with the fewest digits that read back exactly.
std::string to_toml(const OptionValue& value);

/// The value of a bool or a number; NaN for all else.
double as_number(const OptionValue& value);

}  // namespace basin
