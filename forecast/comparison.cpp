#include "forecast/comparison.h"

#include <sstream>
#include <vector>

namespace basin {
namespace {

bool is_compared(const std::string& key, const std::string& model) {
  return key == "model" || key == "loss" || key == "label_smoothing" || key == "target_loss" ||
         key == "dtype" || key.rfind("data.", 0) == 0 || key.rfind(model + ".", 0) == 0;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

std::string comparison_text(const RunOptions& options) {
  std::string text;
  for (const Option& option : options.defining_table())
    if (is_compared(option.key, options.model)) text += option.key + " = " + to_toml(option.get()) + "\n";
  return text;
}

std::string compared_difference(const std::string& a, const std::string& b) {
  const std::vector<std::string> first = lines_of(a), second = lines_of(b);
  for (size_t i = 0; i < first.size() && i < second.size(); ++i) {
    if (first[i] == second[i]) continue;
    const size_t at = first[i].find(" = ");
    const size_t other = second[i].find(" = ");
    return first[i].substr(0, at) + " (" + first[i].substr(at + 3) + " and " + second[i].substr(other + 3) +
           ")";
  }
  return "their options";
}

}  // namespace basin
