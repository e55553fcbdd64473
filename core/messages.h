// defines: in_colour(), warn() and counted(): how messages to people are coloured and worded.
#pragma once

#include <concepts>
#include <string>

namespace basin {

enum class Colour { red, yellow, green };

/// `text` with a terminal's codes for the colour around it where stderr is a terminal and NO_COLOR (no-color.org)
/// is unset or empty; else as it is.
std::string in_colour(Colour colour, const std::string& text);

/// "warning: TEXT" on stderr, in one line.
void warn(const std::string& text);

/// "1 run", "8 runs".
template <std::integral T>
std::string counted(T n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

}  // namespace basin
