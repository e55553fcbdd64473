#include "core/nearest.h"

namespace basin {
namespace {

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(const std::string& typed, const std::vector<std::string>& known, size_t at_most) {
  std::string best;
  size_t best_distance = at_most + 1;
  for (const std::string& name : known) {
    const size_t distance = edit_distance(typed, name);
    if (distance < best_distance) best_distance = distance, best = name;
  }
  return best;
}

std::string did_you_mean(const std::string& typed, const std::vector<std::string>& known) {
  if (typed.empty()) return "";
  // As many edits as it has letters make any short name of any other.
  const size_t at_most = std::min(typed.size() - 1, std::max<size_t>(2, typed.size() / 3));
  const std::string near = nearest_name(typed, known, at_most);
  return near.empty() ? "" : "; did you mean \"" + near + "\"?";
}

std::string unknown_name(const std::string& what, const std::string& typed,
                         const std::vector<std::string>& known) {
  const std::string near = did_you_mean(typed, known);
  return fmt::format("unknown {} \"{}\"{} known: {}", what, typed, near.empty() ? ";" : near,
                     fmt::join(known, ", "));
}

}  // namespace basin
