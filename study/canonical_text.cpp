#include "study/canonical_text.h"

namespace basin {
namespace {

// As json.dumps(text, ensure_ascii=False).
std::string json_text(const std::string& text) {
  static const std::map<char, std::string> escapes = {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"},
                                                      {'\r', "\\r"}, {'\t', "\\t"},  {'\b', "\\b"},
                                                      {'\f', "\\f"}};
  std::string json = "\"";
  for (const char c : text) {
    const auto escape = escapes.find(c);
    if (escape != escapes.end())
      json += escape->second;
    else if (static_cast<unsigned char>(c) < 0x20)
      json += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else
      json += c;
  }
  return json + "\"";
}

// As Python's repr() of a float: both print the fewest digits that read back, with an exponent outside of 1e-4 to 1e16.
std::string json_text(double number) {
  const std::string text = fmt::format("{}", number);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

std::string canonical_value(const OptionValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>) {
          return v ? "true" : "false";
        } else if constexpr (std::is_same_v<T, std::string>) {
          return json_text(v);
        } else if constexpr (std::is_arithmetic_v<T>) {
          return json_text(static_cast<double>(v));
        } else {
          std::vector<std::string> parts;
          for (const auto& element : v) parts.push_back(canonical_value(OptionValue(element)));
          return fmt::format("[{}]", fmt::join(parts, ", "));
        }
      },
      value);
}

}  // namespace

std::string canonical_text(const std::string& kind, const std::vector<TomlEntry>& entries) {
  std::vector<std::string> lines;
  for (const TomlEntry& entry : entries)
    if (entry.key != "exploratory") lines.push_back(entry.key + " = " + canonical_value(entry.value));
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}\n{}", kind, fmt::join(lines, "\n"));
}

}  // namespace basin
