// A Markdown table for a terminal.
#include <gtest/gtest.h>

#include "sweep/collect/table_text.h"

namespace basin {
namespace {

TEST(AlignedTables, KeepsHeadingsAndAlignsByCharacters) {
  const std::string markdown =
      "# Sweep: 2 runs\n\nA paragraph.\n\n## Protocol A: one\n\n| batch size | optimiser | λ₁ "
      "|\n|---:|---|---:|\n"
      "| 8 | sgd | 1 ± 2 |\n| 16 | lamb | – |\n\n## Protocol B\n\n| a |\n|---|\n|  |\n";
  EXPECT_EQ(aligned_tables(markdown),
            "Protocol A: one\n"
            "batch size  optimiser     λ₁\n"
            "         8  sgd        1 ± 2\n"
            "        16  lamb           –\n"
            "\n"
            "Protocol B\na\n\n\n");
}

TEST(AlignedTables, OfNothingIsNothing) { EXPECT_EQ(aligned_tables(""), ""); }

}  // namespace
}  // namespace basin
