#include "sweep/collect/table_text.h"

#include <algorithm>
#include <sstream>
#include <vector>

namespace basin {
namespace {

using Cells = std::vector<std::string>;

/// Characters, not bytes: "λ₁" is two wide.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// "| a | b |" as {"a", "b"}.
Cells cells_of(const std::string& line) {
  Cells cells;
  for (size_t at = 1, bar; (bar = line.find('|', at)) != std::string::npos; at = bar + 1) {
    const std::string cell = line.substr(at, bar - at);
    const size_t first = cell.find_first_not_of(' ');
    cells.push_back(first == std::string::npos ? ""
                                               : cell.substr(first, cell.find_last_not_of(' ') + 1 - first));
  }
  return cells;
}

/// The second line, "|---:|---|", says which columns are aligned right.
std::string aligned(const std::vector<Cells>& table) {
  const Cells& rule = table.at(1);
  std::vector<size_t> widths(rule.size(), 0);
  for (size_t row = 0; row < table.size(); ++row) {
    for (size_t i = 0; row != 1 && i < rule.size(); ++i)
      widths[i] = std::max(widths[i], width_of(table[row].at(i)));
  }
  std::string text;
  for (size_t row = 0; row < table.size(); ++row) {
    if (row == 1) continue;
    std::string line;
    for (size_t i = 0; i < rule.size(); ++i) {
      const std::string& cell = table[row][i];
      const std::string space(widths[i] - width_of(cell), ' ');
      line += (i > 0 ? "  " : "") + (rule[i].back() == ':' ? space + cell : cell + space);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace

std::string aligned_tables(const std::string& markdown) {
  std::istringstream lines(markdown + "\n\n");
  std::string text, line;
  std::vector<Cells> table;
  while (std::getline(lines, line)) {
    if (line.rfind('|', 0) == 0) {
      table.push_back(cells_of(line));
      continue;
    }
    if (!table.empty()) text += aligned(table) + "\n";
    table.clear();
    if (line.rfind("## ", 0) == 0) text += line.substr(3) + "\n";
  }
  return text;
}

}  // namespace basin
