// defines: aligned_tables(), the tables of table.md for a terminal.
#pragma once

#include <string>

namespace basin {

/// The headings and tables of a Markdown text in columns of equal width, without bars; what stands between them is left out.
std::string aligned_tables(const std::string& markdown);

}  // namespace basin
