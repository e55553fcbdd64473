// defines: every reader of bytes from outside, and what a fuzzer demands of it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace basin::fuzz {

struct Reader {
  std::string kind;  // the folder of its corpus: tests/fuzz/corpus/KIND
  std::function<void(const std::string& path)> read;
};
const std::vector<Reader>& readers();
const Reader& reader_of(const std::string& kind);

/// What the reader said of the file `path` when it has these bytes: nothing where it took them, else the line of its basin::Error. Any other
/// exception goes through, and std::logic_error says that the line isn't one.
std::string said_of(const Reader& reader, std::string_view bytes, const std::string& path);

}  // namespace basin::fuzz
