#include "core/option_value.h"

#include <charconv>
#include <cmath>

namespace basin {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\t') {
      out += "\\t";
      continue;
    }
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04X}", static_cast<int>(c));
      continue;
    }
    out += c;
  }
  return out + "\"";
}

std::string shortest(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".en") == std::string::npos)
    text += ".0";  // TOML tells floats from integers by the point
  return text;
}

template <class T>
std::string list_text(const std::vector<T>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + to_toml(OptionValue(values[i]));
  return out + "]";
}

}  // namespace

std::string to_toml(const OptionValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>)
          return v ? "true" : "false";
        else if constexpr (std::is_same_v<T, int64_t>)
          return std::to_string(v);
        else if constexpr (std::is_same_v<T, double>)
          return shortest(v);
        else if constexpr (std::is_same_v<T, std::string>)
          return quoted(v);
        else
          return list_text(v);
      },
      value);
}

double as_number(const OptionValue& value) {
  if (const double* d = std::get_if<double>(&value)) return *d;
  if (const int64_t* i = std::get_if<int64_t>(&value)) return static_cast<double>(*i);
  if (const bool* b = std::get_if<bool>(&value)) return *b ? 1.0 : 0.0;
  return NAN;
}

}  // namespace basin
