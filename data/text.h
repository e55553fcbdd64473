// defines: text_windows(), a text as a data set; TextFile.
#pragma once

#include <string>

#include "data/dataset.h"

namespace basin {

struct TextFile {
  std::string where;  // for messages
  std::string bytes;
};
/// DataError where `path` is no file.
TextFile read_text_file(const std::string& path);

/// Examples are windows of data.context = T tokens x_1 .. x_T with the labels x_2 .. x_T+1: inputs and labels int64 [n, T], views into the
/// tokens, so that windows that overlap take no memory of their own. Tokens are the characters (UTF-8) that occur anywhere in the text,
/// numbered by code point, or bytes.
///
/// The text is cut in three without shuffling: the training part, the share data.validation at its end, and the share data.test_share at
/// the end of the whole; no window reaches into another part. Training windows begin every data.stride tokens (0: every T, so that each
/// token is predicted once an epoch), those of the other two every T. What a part has left after its last window is not used.
///
/// DataError for a text shorter than a window in any part, and for one that isn't UTF-8 where characters are asked for.
Dataset text_windows(const std::string& name, const TextFile& file, const DataOptions& options);

}  // namespace basin
