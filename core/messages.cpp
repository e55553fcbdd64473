#include "core/messages.h"

#include <cstdio>
#include <cstdlib>

#include "core/progress.h"

namespace basin {
namespace {

bool colours_wanted() {
  const char* const no_color = std::getenv("NO_COLOR");
  return stderr_is_terminal() && !(no_color && *no_color);
}

int code_of(Colour colour) {
  switch (colour) {
    case Colour::red:
      return 31;
    case Colour::yellow:
      return 33;
    case Colour::green:
      return 32;
  }
  return 39;
}

}  // namespace

std::string in_colour(Colour colour, const std::string& text) {
  return colours_wanted() ? fmt::format("\033[{}m{}\033[0m", code_of(colour), text) : text;
}

void warn(const std::string& text) {
  fmt::print(stderr, "{} {}\n", in_colour(Colour::yellow, "warning:"), text);
}

}  // namespace basin
